"""COLMAP databases: raw bytes, or tables with unusual values. Every pair is read."""

import sqlite3
from pathlib import Path

import harness

with harness.instrument():
    from caransac.verification.colmap import ColmapDatabase
    from caransac.verification.pair_records import BadPairError

SCHEMA = """
CREATE TABLE cameras (camera_id INTEGER PRIMARY KEY, model, width, height, params, prior_focal_length);
CREATE TABLE images (image_id INTEGER PRIMARY KEY, name, camera_id);
CREATE TABLE keypoints (image_id INTEGER PRIMARY KEY, rows, cols, data);
CREATE TABLE descriptors (image_id INTEGER PRIMARY KEY, rows, cols, data);
CREATE TABLE matches (pair_id INTEGER PRIMARY KEY, rows, cols, data);
CREATE TABLE two_view_geometries (pair_id INTEGER PRIMARY KEY, rows, cols, data, config, F, E, H, qvec, tvec);
"""
PAIR = 2147483647 + 2


def one_input(data: bytes) -> None:
    decisions = harness.Decisions(data)
    with harness.folder() as place:
        path = place / "database.db"
        if decisions.number(4) == 0:
            path.write_bytes(decisions.rest())
        else:
            _fill(path, decisions)
        given = {"strict": bool(decisions.number(2)), "ratio_from_descriptors": bool(decisions.number(2))}
        calibrated = decisions.choose(("auto", "always", "never"))
        harness.refusing(lambda: _read_all(ColmapDatabase(path, calibrated=calibrated, **given)))


def _fill(path: Path, decisions: harness.Decisions) -> None:
    params, keypoints = decisions.sensible_array(3).tobytes(), decisions.sensible_array(9, 2).astype("f4").tobytes()
    rows = {
        "cameras": [[1, 0, 640, 480, params, 1]],
        "images": [[1, "a.jpg", 1], [2, "b.jpg", 1]],
        "keypoints": [[1, 9, 2, keypoints], [2, 9, 2, keypoints]],
        "descriptors": [[1, 9, 128, bytes(9 * 128)], [2, 9, 128, bytes(9 * 128)]],
        "matches": [[PAIR, 4, 2, bytes([0, 0, 0, 0, 1, 0, 0, 0] * 4)]],
        "two_view_geometries": [],
    }
    for _ in range(decisions.number(6)):
        table = decisions.choose([name for name in rows if rows[name]])
        row = decisions.choose(rows[table])
        row[decisions.number(len(row))] = _value(decisions)
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA)
    for table, added in rows.items():
        for row in added:
            try:
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
            except (sqlite3.Error, OverflowError):  # SQLite's own refusal to store it
                continue
    connection.commit()
    connection.close()


def _value(decisions: harness.Decisions) -> object:
    values = (
        lambda: None,
        decisions.text,
        decisions.real,
        lambda: decisions.number(256) - 128,
        lambda: int.from_bytes(decisions.take(8), "little", signed=True),
        lambda: decisions.take(decisions.number(100)),
        lambda: decisions.sensible_array(9, 2).astype("f4").tobytes(),
    )
    return decisions.choose(values)()


def _read_all(database: ColmapDatabase) -> None:
    try:
        assert all(report.num_inliers >= 0 for report in database.kept)
        for key in database.pending:
            try:
                database.read(key)
            except BadPairError:
                continue
    finally:
        database.close()


if __name__ == "__main__":
    harness.fuzz(one_input)
