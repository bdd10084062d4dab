"""Robust estimation: the loop of CA-RANSAC, its classical rival, and what both are made of."""
