"""Pair lists in SuperGlue's text format."""

from dataclasses import replace

import numpy as np
import pytest
from layouts import assert_same, not_finite, refused, spoil, write_pair_list

import caransac
from caransac.geometry import pose_error_deg, rotation_from_vector
from caransac.io.images import write_image
from caransac.synthetic import make_pair
from caransac_lab.cli import main
from caransac_lab.datasets import match_pair_list, open_dataset, read_pair_list
from caransac_lab.render import render_pair


def test_pair_lists_come_with_cached_matches(tmp_path):
    truth = [make_pair(30, seed=seed) for seed in range(3)]
    path = write_pair_list(tmp_path, truth)
    read = list(read_pair_list(path))
    assert len(read) == 3
    for pair, made in zip(read, truth, strict=True):
        assert_same(pair, made)
        assert np.array_equal(pair.scores, made.scores)
        assert pair.score_kind == "confidence"
        assert pair.scene == "list"
    write_pair_list(tmp_path, truth, "ratio")
    assert next(read_pair_list(path)).score_kind == "ratio"
    assert len(list(read_pair_list(path, max_pairs=2))) == 2


@pytest.mark.parametrize("form", ["R(9) t(3)", "T(16)", "views"])
def test_lists_in_the_forms_of_glue_factory_are_read(tmp_path, form, rng):
    truth = [make_pair(30, seed=seed) for seed in range(2)]
    path = write_pair_list(tmp_path, truth)
    lines, views = [], []
    for line, pair in zip(path.read_text().splitlines(), truth, strict=True):
        name1, name2, _, _, *numbers = line.split()
        T = np.array(numbers[18:], float).reshape(4, 4)
        pose = [*T[:3, :3].ravel(), *T[:3, 3]] if form == "R(9) t(3)" else T.ravel()
        lines.append(" ".join([name1, name2, *numbers[:18], *map(repr, map(float, pose))]))
        R1, t1 = rotation_from_vector(rng.normal(size=3)), rng.normal(size=3)  # from the world to camera 1
        for name, camera, R, t in (
            (name1, pair.camera1, R1, t1),
            (name2, pair.camera2, T[:3, :3] @ R1, T[:3, :3] @ t1 + T[:3, 3]),
        ):
            numbers_of_view = " ".join(repr(float(number)) for number in (*R.ravel(), *t))
            params = " ".join(map(repr, camera.params))
            views.append(f"{name} {numbers_of_view} {camera.model} {camera.width} {camera.height} {params}")
    if form == "views":
        lines = [" ".join(line.split()[:2]) for line in lines]
        (tmp_path / "views.txt").write_text("\n".join(views))
    path.write_text("\n".join(lines))
    for pair, made in zip(read_pair_list(path), truth, strict=True):
        assert_same(pair, made)
        assert form != "views" or pair.camera2 == made.camera2
    assert open_dataset(path).num_pairs == 2


def test_views_that_are_missing_or_broken_are_named(tmp_path):
    path = write_pair_list(tmp_path, [make_pair(30)])
    path.write_text("scene/a0.jpg scene/b0.jpg\n")
    with pytest.raises(FileNotFoundError, match=r"no such file: .*views.txt, which has the cameras and poses"):
        next(read_pair_list(path))
    view = "scene/a0.jpg 1 0 0 0 1 0 0 0 1 0 0 0 PINHOLE 640 480 500 500 320 240"
    (tmp_path / "views.txt").write_text(view)
    with pytest.raises(ValueError, match=r"views.txt has no line for scene/b0.jpg"):
        next(read_pair_list(path))
    for broken in (view[:30], view.replace("PINHOLE", "LENS"), view.replace(" 0 1 ", " 0 nan ")):
        (tmp_path / "views.txt").write_text(broken)
        with pytest.raises(ValueError, match=r"views.txt: line 1 is not 'path R\(9\) t\(3\) MODEL"):
            next(read_pair_list(path))


@pytest.mark.slow
def test_matching_of_pair_lists_resumes_and_happens_once(tmp_path, capsys):
    made = render_pair(seed=4, width=320, height=240)
    for name, image in (("a0", made.image1), ("b0", made.image2), ("a1", made.image1), ("b1", made.image2)):
        write_image(tmp_path / "scene" / f"{name}.jpg", image)  # the list contains .jpg; the quality does not matter
    truth = make_pair(30)
    posed = replace(truth, camera1=made.camera, camera2=made.camera, R=made.R, t=made.t)
    path = write_pair_list(tmp_path, [posed, posed])
    path.with_suffix(".h5").unlink()

    def stop(done, _):
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        match_pair_list(path, tmp_path, progress=stop)
    assert not path.with_suffix(".h5").exists()
    (tmp_path / "scene" / "a0.jpg").unlink()  # the first pair is not read again
    command = ["bench", str(path), "--images", str(tmp_path), "--methods", "CA-RANSAC", "--timing-pairs", "0"]
    assert main([*command, "--workers", "1", "--out", str(tmp_path / "out")]) == 0
    assert "(2 pairs, 1 scene)" in capsys.readouterr().out
    for pair in read_pair_list(path):
        assert pair.score_kind == "ratio"
        result = caransac.estimate_relative_pose(
            pair.points1, pair.points2, pair.camera1, pair.camera2, scores=pair.scores, score_kind=pair.score_kind
        )
        assert pose_error_deg(result.R, result.t, pair.R, pair.t) < 1
    assert match_pair_list(path, tmp_path) == path.with_suffix(".h5")
    with pytest.raises(ValueError, match=r"list\.h5 has matches by rootsift, not by orb: move it away"):
        match_pair_list(path, tmp_path, features="orb")
    assert main(["bench", str(path), "--images", str(tmp_path / "none"), "--out", str(tmp_path / "other")]) == 2
    assert "--images: no such folder" in capsys.readouterr().err


def test_errors_in_pair_lists_name_the_line(tmp_path):
    path = write_pair_list(tmp_path, [make_pair(30)])
    path.write_text(path.read_text().replace("scene/a0.jpg", "scene/c0.jpg"))
    with pytest.raises(ValueError, match=r"no matches of scene-c0\.jpg/scene-b0\.jpg"):
        list(read_pair_list(path))
    path.write_text("a b 0 0 1 2 3\n")
    with pytest.raises(ValueError, match=r"line 1 has 7 words"):
        list(read_pair_list(path))
    path.with_suffix(".h5").unlink()
    with pytest.raises(FileNotFoundError, match=r"no such file.*list\.h5"):
        list(read_pair_list(path))


@not_finite
@pytest.mark.parametrize("name", ["x1", "x2", "scores"])
def test_numbers_of_pair_lists_must_be_finite(tmp_path, name, value):
    path, key = write_pair_list(tmp_path, [make_pair(30), make_pair(30)]), "scene-a1.jpg/scene-b1.jpg"
    spoil(path.with_suffix(".h5"), f"{key}/{name}", value)
    refused(lambda: read_pair_list(path), "list.h5", key)


@not_finite
def test_poses_of_pair_lists_must_be_finite(tmp_path, value):
    path = write_pair_list(tmp_path, [make_pair(30)])
    path.write_text(path.read_text().replace(" 1.0\n", f" {value}\n"))
    refused(lambda: read_pair_list(path), "list.txt", "scene-a0.jpg/scene-b0.jpg")
