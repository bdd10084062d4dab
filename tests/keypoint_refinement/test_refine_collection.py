"""Batches of pairs, the work file, and the whole refinement of a database and of hloc's files."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np
import pytest
from photographed import SIZE

from caransac.keypoint_refinement import (
    ColmapKeypoints,
    HlocKeypoints,
    WorkFile,
    read_refinement,
    refine_collection,
    refine_keypoints,
    undo,
    work_file_of,
)
from caransac.keypoint_refinement.refine_collection import batches_of_pairs, connected_order
from caransac.verification.colmap import split_pair


def run(collection, **more):
    with ThreadPoolExecutor(1) as executor, WorkFile(work_file_of(collection.target), collection.identity) as work:
        summary = refine_keypoints(collection, work, executor, **more)
        work.remove()
    collection.close()
    return summary


def tables_of(path):
    with sqlite3.connect(path) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(map(repr, connection.execute(f"SELECT * FROM {name}"))) for name in names}


def keypoints_of(path):
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT rows, cols, data FROM keypoints ORDER BY image_id").fetchall()
    return [np.frombuffer(data, np.float32).reshape(rows, cols) for rows, cols, data in rows]


def matches_of(path):
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT pair_id, data FROM matches").fetchall()
    return {
        tuple(image - 1 for image in split_pair(key)): np.frombuffer(data, np.uint32).reshape(-1, 2)
        for key, data in rows
    }


def test_a_database_is_refined_into_a_copy(plane, photos, verified, tmp_path):
    before = tables_of(verified)
    out = tmp_path / "out.db"
    summary = run(ColmapKeypoints(verified, photos, out))
    assert tables_of(verified) == before
    after = keypoints_of(out)
    assert plane.disagreement([rows[:, :2] - 0.5 for rows in after]) < 0.2 * plane.disagreement(plane.keypoints)
    assert all(np.all(rows[:, 2:] == 7) for rows in after)
    remaining = matches_of(out)
    wrong = sum(np.isin(remaining[pair][:, 0], np.flatnonzero(plane.wrong[pair])).sum() for pair in plane.matches)
    kept = sum(map(len, remaining.values()))
    assert kept == summary.agreeing > 0.7 * summary.matches
    assert wrong < 0.02 * kept
    assert summary.moved > 0.9 * sum(map(len, plane.keypoints))


def test_a_refinement_in_place_can_be_undone(photos, verified):
    before = tables_of(verified)
    run(ColmapKeypoints(verified, photos))
    assert read_refinement(verified)[1].pairs == 10
    undo(verified)
    after = tables_of(verified)
    assert all(after[name] == before[name] for name in before)
    assert read_refinement(verified) is None
    with pytest.raises(ValueError, match="nothing to undo"):
        undo(verified)


def test_matches_can_be_kept(photos, verified, tmp_path):
    run(ColmapKeypoints(verified, photos, tmp_path / "out.db", keep_matches=True))
    assert tables_of(tmp_path / "out.db")["matches"] == tables_of(verified)["matches"]


def test_missing_photographs_are_named_and_their_matches_stay(plane, photos, verified, tmp_path):
    (photos / "2.png").unlink()
    problems = {}
    summary = run(ColmapKeypoints(verified, photos, tmp_path / "out.db"), on_problem=problems.__setitem__)
    assert list(problems) == ["2.png"]
    assert summary.pairs == 6
    remaining = matches_of(tmp_path / "out.db")
    assert all(len(remaining[pair]) == len(plane.matches[pair]) for pair in plane.matches if 2 in pair)


def test_without_any_photograph_nothing_is_written(verified, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no photograph can be used"):
        run(ColmapKeypoints(verified, tmp_path / "empty", tmp_path / "out.db"))
    assert not (tmp_path / "out.db").exists()


def test_a_database_without_verified_pairs_is_refused(photos, verified):
    with sqlite3.connect(verified) as connection:
        connection.execute("UPDATE two_view_geometries SET config = 1, rows = 0, data = x''")
    with pytest.raises(ValueError, match="run caransac verify first"):
        ColmapKeypoints(verified, photos)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("UPDATE keypoints SET data = zeroblob(7) WHERE image_id = 2", "corrupt keypoints of 1.png"),
        ("UPDATE two_view_geometries SET data = randomblob(length(data))", "corrupt geometry of 0.png and 1.png"),
        ("CREATE TRIGGER t AFTER UPDATE ON keypoints BEGIN DELETE FROM images; END", "a trigger"),
        ("CREATE VIEW caransac_refined AS SELECT 1", "a view"),
    ],
)
def test_forged_databases_are_refused_and_stay(photos, verified, command, reason):
    with sqlite3.connect(verified) as connection:
        connection.execute(command)
    before = verified.read_bytes()
    with pytest.raises(ValueError, match=reason):
        run(ColmapKeypoints(verified, photos))
    assert verified.read_bytes() == before


def test_an_interrupted_run_continues(photos, verified, tmp_path, monkeypatch):
    monkeypatch.setattr(refine_collection, "PAIRS_PER_BATCH", 2)
    undisturbed = tmp_path / "undisturbed.db"
    run(ColmapKeypoints(verified, photos, undisturbed))

    def stop(done, _):
        if done >= 4:
            raise KeyboardInterrupt

    collection = ColmapKeypoints(verified, photos, tmp_path / "out.db")
    with pytest.raises(KeyboardInterrupt):
        run(collection, on_batch=stop)
    collection.close()
    counts = []
    run(ColmapKeypoints(verified, photos, tmp_path / "out.db"), on_batch=lambda done, _: counts.append(done))
    assert counts[0] >= 4
    assert tables_of(tmp_path / "out.db") == tables_of(undisturbed)


def test_the_result_does_not_depend_on_parts(photos, verified, tmp_path, monkeypatch):
    run(ColmapKeypoints(verified, photos, tmp_path / "one.db"))
    monkeypatch.setattr(refine_collection, "MATCHES_PER_PART", 300)
    monkeypatch.setattr(refine_collection, "PARTS_IN_MEMORY", 1)
    run(ColmapKeypoints(verified, photos, tmp_path / "other.db"))
    for one, other in zip(*map(keypoints_of, (tmp_path / "one.db", tmp_path / "other.db")), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)


def test_offsets_of_another_database_are_not_used(tmp_path):
    path = tmp_path / "work"
    with WorkFile(path, "before") as work:
        work._connection.execute("INSERT INTO offsets VALUES (1, 5, 0, 1, x'')")
    with WorkFile(path, "before") as work:
        assert work.count() == {1: (5, 0)}
    with WorkFile(path, "after") as work:
        assert work.count() == {}


def test_a_foreign_work_file_is_refused(tmp_path):
    (tmp_path / "work").write_bytes(b"text" * 400)
    with pytest.raises(ValueError, match="not the work file"):
        WorkFile(tmp_path / "work", "")


def hloc_keypoints(folder, photos, **more):
    return HlocKeypoints(
        folder / "feats.h5",
        folder / "verified.h5",
        folder / "pairs.txt",
        photos,
        out_features=folder / "feats-refined.h5",
        out=folder / "out.h5",
        **more,
    )


def test_files_of_hloc_are_refined(plane, photos, tmp_path):
    collection = hloc_keypoints(plane.write_files(tmp_path), photos)
    run(collection)
    with h5py.File(tmp_path / "feats-refined.h5") as features:
        after = [features[f"{number}.png/keypoints"][()] for number in range(5)]
        assert features["0.png/keypoints"].attrs["uncertainty"] == 1.5
        assert features["0.png/descriptors"].dtype == np.float16
        assert features["0.png/image_size"][()].tolist() == list(SIZE)
    assert after[0].dtype == np.float32  # half precision is not enough
    assert plane.disagreement(after) < 0.2 * plane.disagreement(plane.keypoints)
    with h5py.File(collection.agreeing_matches) as matches:
        partners = matches["0.png/1.png/matches0"][()]
    assert np.mean(partners[plane.wrong[0, 1]] == -1) > 0.9
    assert np.mean(partners[~plane.wrong[0, 1]] >= 0) > 0.85


def test_unverified_files_of_hloc_are_refused(plane, photos, tmp_path):
    plane.write_files(tmp_path)
    with h5py.File(tmp_path / "verified.h5", "a") as file:
        del file["0.png/1.png"].attrs["config"]
    with pytest.raises(ValueError, match="run caransac verify first"):
        hloc_keypoints(tmp_path, photos)


class Pairs:
    """Pairs of images without anything else."""

    def __init__(self, pairs):
        self.pairs = pairs

    def images_of(self, key):
        return self.pairs[key]


def test_batches_have_few_images(rng):
    names = rng.permutation(300)
    pairs = Pairs([(int(names[i]), int(names[j])) for i in range(300) for j in range(i + 1, min(i + 6, 300))])
    batches = list(batches_of_pairs(pairs, range(len(pairs.pairs))))
    assert sorted(key for batch in batches for key in batch) == list(range(len(pairs.pairs)))
    read = [{image for key in batch for image in pairs.pairs[key]} for batch in batches]
    assert max(map(len, read)) <= 2 * refine_collection.IMAGES_PER_BLOCK
    assert sum(map(len, read)) < 3 * 300  # a photograph is read less than three times


def test_matched_images_are_near_each_other():
    assert connected_order([(5, 1), (1, 9), (9, 2), (7, 8)]) == [1, 5, 9, 2, 7, 8]
