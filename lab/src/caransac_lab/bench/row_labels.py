"""Readable names of rows and columns: result files have short keys, tables show these names."""

from __future__ import annotations

import re

UNDECIDED = ", `same_camera` not given"
F, SIZES = "fundamental matrix", "image sizes given"
FOCAL = {
    "exact": "known focal length",
    "unknown": f"unknown focal length, {SIZES}",
    "PoseLib shared focal": "PoseLib, one unknown focal length",
    "F": F,
    "F with sizes": f"{F}, {SIZES}",
}
LABELS = {
    "absolute": {
        "CA-RANSAC, focal 5 % stated": "CA-RANSAC, focal length off by 5 %, `focal_deviation=0.05`",
        "CA-RANSAC, focal 5 % as if exact": "CA-RANSAC, focal length off by 5 %, passed as exact",
        "PoseLib, focal 5 %": "PoseLib, focal length off by 5 %",
        "CA-RANSAC, unknown": "CA-RANSAC, unknown focal length",
        "CA-RANSAC, k1 -0.05 stated": "CA-RANSAC, lens of k1 = -0.05, `distortion_deviation=0.05`",
        "CA-RANSAC, k1 -0.05 as if none": "CA-RANSAC, lens of k1 = -0.05, passed as k1 = 0",
        "plane": "points on a plane",
        "far": "far points",
        "few": "6 to 30 matches",
        "focal": "focal length off by 15 to 100 %, passed as exact",
        "unrelated": "unrelated images",
    },
    "any_scene": {
        "cameras": "cameras given",
        "sizes": "image sizes given",
        "nothing": "nothing given",
        "the command": "`caransac pose`",
    },
    "calibration": {
        "probabilities": "inlier probabilities",
        "confidence": "confidence of poses",
        "confidence, F": "confidence of fundamental matrices",
        "mean said": "mean predicted",
        "mean true": "observed frequency",
        "ECE": "calibration error (ECE)",
    },
    "hostile_databases": {
        "nothing": "nothing unusual",
        "a trigger that deletes everything": "a trigger that deletes all rows",
        "a view of matches without end": "an endless view in the place of matches",
        "matches that are generated": "matches in a generated column",
        "rows without a key, many times": "rows without a primary key, many times",
        "an unknown order of texts": "an unknown collation",
        "matches that say they have 2^40 rows": "matches that claim 2^40 rows",
        "matches of keypoints that are not there": "matches of missing keypoints",
        "keypoints that are no numbers": "NaN keypoints",
        "a camera of a kind that nobody knows": "an unknown camera model",
        "a name that steers the terminal, and no matches": "an image name with terminal escapes, and corrupt matches",
        "numbers of pairs from beyond": "pair ids beyond the images",
        "our own settings, with the last number there is": "caransac's own table, with the largest row id",
    },
    "lenses": {
        "known": "true cameras with k1",
        "flat": "true cameras, k1 = 0 passed as exact",
        "lens": "true cameras, `distortion_deviation=0.1`",
        "EXIF": "focal length off by 4 %, `focal_deviation=0.04`",
        "EXIF and lens": "focal length off by 4 %, `focal_deviation=0.04`, `distortion_deviation=0.1`",
        "unknown": SIZES,
        "pooled": "cameras of `estimate_camera`",
        "PoseLib": "PoseLib, true cameras, k1 = 0",
    },
    "photos": {
        "before": "caransac 0.1: full size, 8000 strongest keypoints",
        "before, 1600 px": "caransac 0.1, images reduced to 1600 px",
        "now": "caransac (default)",
        "now, full size": "caransac, full size",
        "COLMAP, CA-RANSAC": "COLMAP's features and matches, CA-RANSAC",
        "COLMAP": "COLMAP",
    },
}


def label(result: str, key: str) -> str:
    """Return the readable name of a key in a result file, or the key itself if it is clear."""
    return _focal_label(key) if result == "focal" else LABELS[result].get(key, key)


def _focal_label(key: str) -> str:
    if key.startswith("zoomed, "):
        return f"second image zoomed by 1.5: {_focal_label(key.removeprefix('zoomed, '))}"
    if key.endswith(", camera undecided"):
        return _focal_label(key.removesuffix(", camera undecided")) + UNDECIDED
    if found := re.fullmatch(r"(given|uncertain) (\d+)%", key):
        passed = "passed as exact" if found[1] == "given" else f"`focal_deviation={int(found[2]) / 100:g}`"
        return f"focal length off by {found[2]} %, {passed}"
    return FOCAL.get(key, key)
