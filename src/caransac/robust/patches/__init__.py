"""Matches refined in the photographs."""
