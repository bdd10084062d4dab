"""Helpers for every layer: checked arrays, files, parallel calls, processes. They contain no two-view geometry."""
