"""``caransac localize`` on a small model of rendered views."""

import json
import os
import shutil
import sqlite3
from itertools import pairwise

import numpy as np
import pycolmap
import pytest

from caransac.cli import main
from caransac.geometry import absolute_pose_error_deg, quaternion_from_rotation
from caransac.geometry.triangulation import triangulate_matches
from caransac.io.descriptors import match_vectors
from caransac.io.images import detect, write_image
from caransac_lab.render import render_views

pytestmark = pytest.mark.slow
QUERY = 2  # index of the view that is not in the model


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """A folder with the model of four views, its database and the image of a fifth view, and the truth of that view."""
    folder = tmp_path_factory.mktemp("scene")
    views = render_views(5, width=480, height=360, arc_deg=28.0)
    found = [detect(image) for image in views.images]
    model = [number for number in range(5) if number != QUERY]
    tracks = []  # one 3D point for each match of neighbouring views
    for a, b in pairwise(model):
        index1, index2, ratios_sq = match_vectors(found[a][1], found[b][1])
        keep = ratios_sq < 0.64
        index1, index2 = index1[keep], index2[keep]
        R = views.rotations[b] @ views.rotations[a].T
        t = views.translations[b] - R @ views.translations[a]
        points = triangulate_matches(
            R, t, found[a][0][index1], found[b][0][index2], views.camera, views.camera, np.ones(len(index1), bool)
        )
        good = points.error_px < 1
        space = (points.xyz[good] - views.translations[a]) @ views.rotations[a]
        for X, match in zip(space, points.index[good], strict=True):
            tracks.append((X, [(a, index1[match]), (b, index2[match])]))
    write_model(folder / "sparse", views, found, model, tracks)
    write_database(folder / "database.db", found, model, views.camera)
    write_image(folder / "query.png", views.images[QUERY])
    for number in model:
        write_image(folder / f"{number}.png", views.images[number])
    return folder, views


@pytest.fixture
def in_images(scene, monkeypatch):
    """Change to the folder of the images, so that their paths are their names in the database."""
    monkeypatch.chdir(scene[0])


def write_model(folder, views, found, model, tracks):
    folder.mkdir()
    camera = views.camera
    params = " ".join(map(str, (camera.fx, camera.params[1] + 0.5, camera.params[2] + 0.5)))
    (folder / "cameras.txt").write_text(f"1 SIMPLE_PINHOLE {camera.width} {camera.height} {params}\n")
    lines, owners = [], {view: {} for view in model}
    kept = []
    for number, (X, track) in enumerate(tracks, 1):
        if all(index not in owners[view] for view, index in track):
            for view, index in track:
                owners[view][index] = number
            kept.append((number, X, track))
    for view in model:
        q, t = quaternion_from_rotation(views.rotations[view]), views.translations[view]
        lines.append(" ".join(map(str, (view + 1, *q, *t, 1, f"{view}.png"))))
        points = found[view][0] + 0.5
        lines.append(" ".join(f"{x} {y} {owners[view].get(i, -1)}" for i, (x, y) in enumerate(points)))
    (folder / "images.txt").write_text("\n".join(lines) + "\n")
    rows = [
        " ".join(map(str, (number, *X, 0, 0, 0, 0.5, *(n for view, i in track for n in (view + 1, i)))))
        for number, X, track in kept
    ]
    (folder / "points3D.txt").write_text("\n".join(rows) + "\n")


def write_database(path, found, model, camera):
    pycolmap.Database.open(path).close()
    with sqlite3.connect(path) as connection:
        params = np.array([camera.fx, camera.params[1] + 0.5, camera.params[2] + 0.5]).tobytes()
        connection.execute("INSERT INTO cameras VALUES (1, 0, ?, ?, ?, 1)", (camera.width, camera.height, params))
        for view in model:
            points, vectors = found[view]
            stored = np.round(512 * vectors).clip(0, 255).astype(np.uint8)
            connection.execute(
                "INSERT INTO images (image_id, name, camera_id) VALUES (?, ?, 1)", (view + 1, f"{view}.png")
            )
            keypoints = (points + 0.5).astype(np.float32)
            connection.execute(
                "INSERT INTO keypoints (image_id, rows, cols, data) VALUES (?, ?, 2, ?)",
                (view + 1, len(points), keypoints.tobytes()),
            )
            connection.execute(
                "INSERT INTO descriptors (image_id, rows, cols, data, type) VALUES (?, ?, 128, ?, 0)",
                (view + 1, len(points), stored.tobytes()),
            )
    connection.close()


def error_of(entry, views, view=QUERY):
    R, t = np.array(entry["R"]), np.array(entry["t"])
    middle = np.array([[0.0, 0, 0]])
    return absolute_pose_error_deg(R, t, views.rotations[view], views.translations[view], middle)


def test_an_image_is_localised(scene, capsys):
    folder, views = scene
    assert main(["localize", str(folder / "sparse"), str(folder / "query.png"), "--json"]) == 0
    entry = json.loads(capsys.readouterr().out)
    assert entry["reliable"] and entry["success"] and entry["num_inliers"] > 50
    assert error_of(entry, views) < 0.5


def write_photographs(folder, views):
    folder.mkdir()
    for number, image in enumerate(views.images):
        if number != QUERY:
            write_image(folder / f"{number}.png", image)
    return str(folder)


def test_points_are_refined_in_the_photographs_of_the_model(scene, capsys, tmp_path):
    folder, views = scene
    command = ["localize", str(folder / "sparse"), str(folder / "query.png")]
    photographs = ["--images", write_photographs(tmp_path / "photos", views)]
    assert main([*command, "--json"]) == main([*command, "--json", *photographs]) == 0
    given, refined = map(json.loads, capsys.readouterr().out.splitlines())
    assert given["num_refined"] is None and refined["num_refined"] > 0.8 * refined["num_inliers"]
    assert refined["noise_px"] < 0.8 * refined["noise_before_px"]
    assert error_of(refined, views) < 0.9 * error_of(given, views)
    assert main([*command, *photographs]) == 0
    assert f"refined         {refined['num_refined']} matches in the images; noise" in capsys.readouterr().out


def test_photographs_that_do_not_belong_to_the_model_are_named(scene, capsys, tmp_path):
    folder, views = scene
    shutil.copytree(folder / "sparse", tmp_path / "sparse")
    write_photographs(tmp_path / "photos", views)
    (tmp_path / "empty").mkdir()
    command = [
        "localize",
        str(tmp_path / "sparse"),
        str(folder / "query.png"),
        "--database",
        str(folder / "database.db"),
    ]
    for change, images, message in (
        (None, "empty", "empty has none of the 4 images of the model"),
        (None, "nowhere", "nowhere has none of the 4 images"),
        (lambda text: text.replace(" 0.png", " ../photos/0.png"), "empty", "has none of"),
        (lambda text: text.replace(" 0.png", f" {tmp_path / 'photos' / '0.png'}"), "empty", "has none of"),
        (lambda text: text.replace("1 ", "x ", 1), "photos", "images.txt: line 1"),
    ):
        text = (folder / "sparse" / "images.txt").read_text()
        (tmp_path / "sparse" / "images.txt").write_text(text if change is None else change(text))
        assert main([*command, "--images", str(tmp_path / images)]) == 2
        assert message in capsys.readouterr().err
    shutil.copy(folder / "sparse" / "images.txt", tmp_path / "sparse")
    for number in (0, 1, 3, 4):
        write_image(tmp_path / "photos" / f"{number}.png", views.images[number][::2, ::2])
    assert main([*command, "--images", str(tmp_path / "photos")]) == 2
    assert "has 240 x 180 pixels, but the model's camera has 480 x 360" in capsys.readouterr().err


def test_a_page_is_written_and_its_path_is_printed(scene, capsys, tmp_path):
    folder, _ = scene
    page = tmp_path / "query.html"
    assert main(["localize", str(folder / "sparse"), str(folder / "query.png"), "--html", str(page)]) == 0
    told = capsys.readouterr()
    assert "inliers" in told.out and "confidence" in told.out and str(page) in told.err
    text = page.read_text()
    assert text.count("<circle") > 100 and "data:image/jpeg;base64" in text


@pytest.mark.usefixtures("in_images")
def test_images_of_the_database_have_stored_features(scene, capsys):
    folder, views = scene
    code = main(["localize", str(folder / "sparse"), "1.png", "--json", "--camera", "432,240,180±5%"])
    entry = json.loads(capsys.readouterr().out)
    assert code == 0 and error_of(entry, views, 1) < 0.5
    assert entry["features"] == "database"
    assert entry["camera"]["params"][0] == pytest.approx(views.camera.fx, rel=0.02)
    assert main(["localize", str(folder / "sparse"), "1.png"]) == 0
    assert "features        from the database" in capsys.readouterr().out


@pytest.mark.usefixtures("in_images")
def test_stored_features_need_the_same_path_and_size(scene, capsys, tmp_path):
    """Another photograph may have the name of an image of the database in another folder, or take its place."""
    folder, views = scene
    command = ["localize", str(folder / "sparse"), "--json", "--database", str(folder / "database.db")]
    noise = np.random.default_rng(3).integers(0, 256, (360, 480, 3), np.uint8)
    write_image(tmp_path / "0.png", noise)
    assert main([*command, str(tmp_path / "0.png")]) == 1
    entry = json.loads(capsys.readouterr().out)
    assert entry["features"] == "image" and not entry["reliable"]
    assert main([*command, str(tmp_path / "1.png")]) == 2
    assert "no such image" in capsys.readouterr().err
    (folder / "0.png").rename(folder / "kept.png")
    try:
        write_image(folder / "0.png", views.images[QUERY][:-20])
        main([*command, "./0.png"])
    finally:
        (folder / "kept.png").replace(folder / "0.png")
    entry = json.loads(capsys.readouterr().out)
    assert entry["features"] == "image"


def test_a_pose_that_is_not_reliable_is_only_in_the_json(scene, capsys):
    folder, _ = scene
    command = ["localize", str(folder / "sparse"), str(folder / "query.png"), "--min-confidence", "1"]
    assert main(command) == 1
    text = capsys.readouterr().out
    assert "not localised: confidence 0." in text and "inliers" in text
    assert "camera centre" not in text and "[" not in text and text.count("\n") == 1
    assert main([*command, "--json"]) == 1
    entry = json.loads(capsys.readouterr().out)
    assert np.shape(entry["R"]) == (3, 3) and not entry["reliable"]


def test_names_of_files_are_escaped(scene, capsys, tmp_path):
    folder, _ = scene
    for name in ("a\x1b[2Jb.png", "caf\udce9.png"):  # the second is not UTF-8 on the disk
        query, page = tmp_path / name, tmp_path / f"{name}.html"
        shutil.copy(folder / "query.png", query)
        assert main(["localize", str(folder / "sparse"), str(query), "--html", str(page)]) == 0
        assert main(["localize", str(folder / "sparse"), str(query), "--min-confidence", "1"]) == 1
        write_image(tmp_path / "grey.png", np.full((360, 480, 3), 90, np.uint8))
        (tmp_path / "grey.png").replace(query)
        assert main(["localize", str(folder / "sparse"), str(query)]) == 1
        shown = capsys.readouterr()
        assert ascii(name)[1:-1] in shown.out and ascii(name)[1:-1] in shown.err
        assert not set("\x1b\udce9") & set(shown.out + shown.err)


@pytest.mark.usefixtures("in_images")
def test_a_camera_has_pixel_centres_at_integers_as_in_other_commands(scene, capsys):
    folder, _ = scene
    assert main(["localize", str(folder / "sparse"), "1.png", "--json", "--camera", "432,240,180"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["camera"]["params"] == [432, 240.5, 180.5], (
        "the answer follows COLMAP's convention"
    )


@pytest.mark.usefixtures("in_images")
def test_the_refined_camera_of_the_model_comes_before_the_prior_of_the_database(scene, capsys, tmp_path):
    """The prior is wrong by 3 %. Cameras that are missing in the model come from the database."""
    folder, views = scene
    database = tmp_path / "database.db"
    shutil.copy(folder / "database.db", database)
    prior = np.array([1.03 * views.camera.fx, views.camera.params[1] + 0.5, views.camera.params[2] + 0.5])
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE cameras SET params = ?", (prior.tobytes(),))
    command = ["localize", str(folder / "sparse"), "1.png", "--json", "--database", str(database)]
    assert main(command) == 0
    camera = json.loads(capsys.readouterr().out)["camera"]
    assert (camera["params"][0], camera["focal_deviation"]) == (views.camera.fx, 0)
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE cameras SET camera_id = 7")
        connection.execute("UPDATE images SET camera_id = 7 WHERE name = '1.png'")
    connection.close()
    main(command)
    assert json.loads(capsys.readouterr().out)["camera"]["focal_deviation"] > 0


@pytest.mark.usefixtures("in_images")
def test_an_interrupted_run_resumes(scene, capsys, tmp_path):
    folder, _ = scene
    out, queries = tmp_path / "poses.jsonl", ["0.png", "1.png", "3.png"]
    command = ["localize", str(folder / "sparse"), "--out", str(out), "--quiet"]
    assert main([*command, *queries[:2]]) == 0
    first = out.read_text()
    out.write_text(first + '{"image": "3.png", "relia')  # an incomplete last line
    assert main([*command, *queries]) == 0
    lines = out.read_text().splitlines()
    assert out.read_text().startswith(first)
    assert [json.loads(line)["image"] for line in lines] == queries
    assert capsys.readouterr().out == ""


def test_errors_are_named(scene, capsys, tmp_path):
    folder, _ = scene
    query = str(folder / "query.png")
    (tmp_path / "notes.txt").write_text("not poses\n")
    (tmp_path / "nested.txt").write_text('{"image": ' + 200_000 * "[" + "\n")
    (tmp_path / "entry.txt").write_text('{"name": "0.png"}\n')
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\n")
    os.mkfifo(tmp_path / "fifo")
    for arguments, message in (
        ([str(tmp_path / "none"), query], "no database.db"),
        ([str(tmp_path), query, "--database", str(folder / "database.db")], "not a COLMAP model"),
        ([str(folder / "sparse"), query, "--database", query], "not a COLMAP database"),
        ([str(folder / "sparse"), str(folder / "none.png")], "no such image"),
        ([str(folder / "sparse"), query, "--out", str(tmp_path / "notes.txt")], "other data"),
        ([str(folder / "sparse"), query, "--out", str(tmp_path / "nested.txt")], "other data"),
        ([str(folder / "sparse"), query, "--out", str(tmp_path / "entry.txt")], "other data"),
        ([str(folder / "sparse"), query, "--out", str(tmp_path / "bytes.txt")], "not a text file"),
        ([str(folder / "sparse"), query, "--out", str(tmp_path / "fifo")], "not a regular file"),
        ([str(folder / "sparse"), query, query, "--html", "a.html"], "--html"),
    ):
        assert main(["localize", *arguments]) == 2
        assert message in capsys.readouterr().err
    write_image(tmp_path / "grey.png", np.full((360, 480, 3), 90, np.uint8))
    assert main(["localize", str(folder / "sparse"), str(tmp_path / "grey.png")]) == 1
    assert "no pose" in capsys.readouterr().err
