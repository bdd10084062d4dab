"""Helpers for every layer: checked arrays, files, parallel calls, processes. They know no two-view geometry."""
