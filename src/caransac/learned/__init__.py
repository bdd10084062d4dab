"""Trained networks in numpy and compiled kernels, and the files of their weights."""
