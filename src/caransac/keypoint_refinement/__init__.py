"""Refine the keypoints of a whole collection of images in their photographs.

The patches of every verified match are aligned; that gives the offset between its keypoints. One shift for every
keypoint explains the offsets of all its matches. Matches whose patches disagree are removed.
"""

from caransac.keypoint_refinement.collection import Collection, KeypointSummary
from caransac.keypoint_refinement.colmap_keypoints import ColmapKeypoints, read_refinement, undo
from caransac.keypoint_refinement.hloc_keypoints import HlocKeypoints
from caransac.keypoint_refinement.refine_collection import refine_keypoints
from caransac.keypoint_refinement.work_file import WorkFile, work_file_of

__all__ = [
    "Collection",
    "ColmapKeypoints",
    "HlocKeypoints",
    "KeypointSummary",
    "WorkFile",
    "read_refinement",
    "refine_keypoints",
    "undo",
    "work_file_of",
]
