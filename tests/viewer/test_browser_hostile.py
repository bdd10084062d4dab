"""Pages of images with malicious names and EXIF data, in a real browser: names are text, EXIF data are left out."""

import base64
import re
import sys

import cv2
import numpy as np
import pytest
from PIL import ExifTags, Image

import caransac.cli
from caransac import estimate_absolute_pose
from caransac._support.untrusted import escape_controls
from caransac.cli import main
from caransac.synthetic import make_query
from caransac.viewer.query_page import write_query_page

pytestmark = pytest.mark.slow

HURT = "<img src=x onerror='window.hurt=1'><script>window.hurt=1</script>"
NAMES = {
    "elements": "<img src=x onerror=window.hurt=1>",
    "attributes": "\" onmouseover='window.hurt=1' x=\"'`",
    "ends of elements": "--><script>window.hurt=1<!--",
    "placeholders": "{{scripts}} {{content}} {{title}}",
    "entities": "&lt;script&gt;&#0;&quot;",
    "lines": "a\nb\u2028c",
    "directions": "\u202egpj.\u2066x",
    "not UTF-8": "caf\udce9\udcff",
}
TEXTS = [tag.value for tag in ExifTags.Base if tag.name in ("ImageDescription", "Make", "Model", "Software", "Artist")]


@pytest.fixture(scope="module")
def photos():
    """Two small views of a courtyard, and malicious EXIF data."""
    folder = caransac.cli.__path__[0]
    images = [cv2.imread(f"{folder}/courtyard{number}.jpg")[:, :, ::-1] for number in (1, 2)]
    exif = Image.Exif()
    for tag in TEXTS:
        exif[tag] = HURT
    details = exif.get_ifd(ExifTags.IFD.Exif)
    details[ExifTags.Base.UserComment] = b"ASCII\0\0\0" + HURT.encode()
    details[ExifTags.Base.LensModel] = details[ExifTags.Base.CameraOwnerName] = HURT
    details[ExifTags.Base.FocalLengthIn35mmFilm] = 28
    return [Image.fromarray(cv2.resize(image, None, fx=0.5, fy=0.5)) for image in images], exif


@pytest.mark.skipif(sys.platform != "linux", reason="other systems restrict file names")
@pytest.mark.parametrize("kind", NAMES)
def test_reports_of_photographs_are_inert(open_report, photos, tmp_path, kind):
    images, exif = photos
    paths = [tmp_path / f"{number}{NAMES[kind]}.jpg" for number in (1, 2)]
    for path, image in zip(paths, images, strict=True):
        with path.open("wb") as file:
            image.save(file, "JPEG", exif=exif, comment=HURT.encode())
    assert main(["pose", *map(str, paths), "--html", str(tmp_path / "report.html")]) in (0, 1)
    check_page(open_report, tmp_path / "report.html", NAMES[kind])


@pytest.mark.parametrize("kind", NAMES)
def test_pages_of_localised_images_are_inert(open_report, tmp_path, kind):
    query = make_query(50, seed=5)
    found = estimate_absolute_pose(query.points2d, query.points3d, query.camera)
    image = np.zeros((query.camera.height, query.camera.width, 3), np.uint8)
    write_query_page(
        tmp_path / "q.html", f"1{NAMES[kind]}.jpg", found, image, (query.camera.width, query.camera.height)
    )
    check_page(open_report, tmp_path / "q.html", NAMES[kind])


def check_page(open_report, path, name):
    """Assert that the page shows the name as text and runs no part of it, and that its images have no EXIF data."""
    text = path.read_bytes()
    images = [base64.b64decode(each) for each in re.findall(rb"data:image/jpeg;base64,([\w+/=]+)", text)]
    assert images and not any(words in image for image in images for words in (b"hurt", b"Exif"))
    assert HURT.encode() not in text
    with open_report(path) as report:
        for title in (report.page.locator("h1").inner_text(), report.page.title()):
            assert escape_controls(f"1{name}.jpg") in title
        report.page.locator("h1").hover()
        assert report.page.evaluate("window.hurt === undefined")
        assert report.page.locator("h1 *").count() == 0
