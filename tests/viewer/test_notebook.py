"""The report in a notebook: an inline frame with the whole page."""

import subprocess
import sys
from html.parser import HTMLParser
from io import BytesIO, StringIO
from types import SimpleNamespace

import pytest

import caransac
from caransac.synthetic import make_pair
from caransac.viewer import InlineReport, show, write_report

PAIR = make_pair(100, seed=2)
POINTS = PAIR.points1, PAIR.points2
RESULT = caransac.estimate_relative_pose(*POINTS, PAIR.camera1, PAIR.camera2)
CAMERAS = {"camera1": PAIR.camera1, "camera2": PAIR.camera2}


class Frame(HTMLParser):
    """A parser that keeps the tag and the attributes of the first element."""

    def __init__(self, page):
        super().__init__()
        self.tag = None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tag, self.attributes = self.tag or tag, dict(attrs)


def written(tmp_path, **shown):
    return write_report(tmp_path / "r.html", RESULT, *POINTS, **shown).read_text(encoding="utf-8")


def test_the_frame_contains_the_report(tmp_path):
    shown = CAMERAS | {"title": 'Mine & "yours" <b>'}
    report = caransac.show(RESULT, *POINTS, height_px=500, **shown)
    assert caransac.show is show and type(report) is InlineReport
    frame = Frame(report._repr_html_())
    assert frame.tag == "iframe" and frame.attributes["height"] == "500"
    assert frame.attributes["srcdoc"] == report.page == written(tmp_path, **shown)
    assert frame.attributes["sandbox"] == "allow-scripts"
    assert len(repr(report)) < 100
    report.save(tmp_path / "saved.html")
    assert (tmp_path / "saved.html").read_text(encoding="utf-8") == report.page


def test_ipython_displays_the_report_at_once(monkeypatch):
    displayed = []
    kernel = SimpleNamespace(get_ipython=object, display=SimpleNamespace(display=displayed.append))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    assert caransac.show(RESULT, *POINTS) is None
    assert [type(report) for report in displayed] == [InlineReport]
    kernel.get_ipython = lambda: None  # IPython is imported but not running
    assert type(caransac.show(RESULT, *POINTS)) is InlineReport


def test_mistakes_are_named():
    with pytest.raises(TypeError, match="camera3"):
        caransac.show(RESULT, *POINTS, camera3=PAIR.camera1)
    with pytest.raises(ValueError, match="points1 must have shape"):
        caransac.show(RESULT, PAIR.points1[:5], PAIR.points2)
    with pytest.raises(AttributeError, match="has no attribute 'shows'"):
        _ = caransac.shows


def test_reports_go_into_open_files(tmp_path):
    expected = written(tmp_path)
    text, data = StringIO(), BytesIO()
    assert write_report(text, RESULT, *POINTS) is text and text.getvalue() == expected
    assert write_report(data, RESULT, *POINTS) is data and data.getvalue().decode() == expected
    with (tmp_path / "open.html").open("w", encoding="utf-8") as file:
        write_report(file, RESULT, *POINTS)
    assert (tmp_path / "open.html").read_text(encoding="utf-8") == expected


def test_the_viewer_is_loaded_when_it_is_used():
    program = "import sys, caransac; print('caransac.viewer' in sys.modules, callable(caransac.show))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
