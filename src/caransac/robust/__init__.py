"""Robust estimation: the loop of CA-RANSAC, its classical counterpart, and what both are made of."""
