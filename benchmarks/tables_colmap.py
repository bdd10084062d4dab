"""Tables of the documents about photographs, COLMAP and scripts of other projects."""

from __future__ import annotations

from published import table
from table_cells import Results, number


def verification(results: Results) -> str:
    """Verification of a database next to COLMAP."""
    columns = ("pairs_per_second", "cpu_ms_per_pair", "recall", "precision")
    lines = ([tool, *(str(row[name]) for name in columns)] for tool, row in results["verification"]["rows"].items())
    header = ["", "pairs per second", "processor ms per pair", "right matches found", "found ones that are right"]
    return table(header, lines)


def reconstruction(results: Results) -> str:
    """COLMAP's mapper after either verification."""
    columns = {
        "registered": "images",
        "points": "points",
        "reprojection_px": "reprojection error, px",
        "median_pose_error_deg": "median pose error, °",
        "verification_s": "verification, s",
    }
    lines = [
        [scene, tool, *(str(row.get(name, "")) for name in columns)]
        for scene, found in results["reconstruction"]["scenes"].items()
        for tool, row in found["rows"].items()
    ]
    return table(["scene", "verified by", *columns.values()], lines)


def focal_pooling(results: Results) -> str:
    """Reconstruction without a focal length."""
    columns = {
        "stored_focal_error_percent": "focal error before mapping, %",
        "pairs_with_pose": "pairs with a pose",
        "median_pair_error_deg": "their median error, °",
        "verification_s": "verification, s",
        "registered": "images",
        "points": "points",
        "focal_error_percent": "focal error after mapping, %",
    }
    rows = results["focal_pooling"]["means"]
    return table(
        ["", *columns.values()], ([tool, *(number(row.get(c)) for c in columns)] for tool, row in rows.items())
    )


def photos(results: Results) -> str:
    """Large photographs by the ways to match them."""
    ways = {
        "now": "`--max-size 1600`, the default",
        "now, full size": "`--max-size 0`",
        "COLMAP, CA-RANSAC": "COLMAP's features and matches, our estimator",
        "COLMAP": "COLMAP's features, matches and estimator",
    }
    lines = []
    for title, found in results["photos"]["sets"].items():
        lines.append([f"*{title}*", *[""] * 5])
        for way, label in ways.items():
            row, count = found["ways"][way], len(found["pairs"])
            cells = [f"{row['seconds']:.1f} s", f"{row['megabytes']:.0f} MB"]
            cells += [", ".join(f"{each:.0f}" for each in row["inliers"]), f"{row['error_deg'][0]:.2f}°"]
            lines.append([label, *cells, f"{row['within_5_deg']} of {count}"])
    header = ["", "processor time", "peak memory", "inliers: least, median, most", "median error", "poses within 5°"]
    return table(header, lines)


def real_databases(results: Results) -> str:
    """Real matches verified by either tool, and what COLMAP's mapper makes of them."""
    lines = []
    for scene, found in results["real_databases"]["scenes"].items():
        lines.append([f"*{scene}, {found['images']} images*", *[""] * 6])
        for tool, row in found["rows"].items():
            counts = (str(row[name]) for name in ("right", "wrong", "registered", "points", "seen_by_three"))
            lines.append([tool, *counts, "" if row["error_px"] is None else f"{row['error_px']:.2f}"])
    header = ["", "right matches", "wrong", "images", "points", "in 3 images or more", "reprojection error, px"]
    return table(header, lines)


def third_party(results: Results) -> str:
    """Scripts of other projects, as they are and with our import."""
    from third_party import rows_table

    return rows_table(results["third_party"]["rows"])
