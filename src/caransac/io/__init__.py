"""Photographs to correspondences, and the files of both."""
