"""Lists of pairs in SuperGlue's text form."""

from dataclasses import replace

import numpy as np
import pytest
from layouts import assert_same, not_finite, refused, spoil, write_pair_list

import caransac
from caransac.cli import main
from caransac.datasets import match_pair_list, read_pair_list
from caransac.geometry import pose_error_deg
from caransac.io.images import write_image
from caransac.render import render_pair
from caransac.synthetic import make_pair


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


def test_pair_lists_of_images_are_matched_once_and_go_on_where_they_were(tmp_path, capsys):
    made = render_pair(seed=4, width=320, height=240)
    for name, image in (("a0", made.image1), ("b0", made.image2), ("a1", made.image1), ("b1", made.image2)):
        write_image(tmp_path / "scene" / f"{name}.jpg", image)  # the list says .jpg, whatever the quality
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


def test_broken_pair_lists_say_where(tmp_path):
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
