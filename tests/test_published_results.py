"""Published results: every table is that of its file, files are small, and the driver knows what is made already."""

import importlib
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BENCHMARKS, RESULTS = ROOT / "benchmarks", ROOT / "benchmarks" / "results"

pytestmark = pytest.mark.skipif(not RESULTS.is_dir(), reason="source distributions have no results")


@pytest.fixture
def script(monkeypatch):
    """Modules of the folder of benchmarks by their names."""
    pytest.importorskip("poselib")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(BENCHMARKS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.slow
def test_every_table_is_that_of_its_file():
    pytest.importorskip("poselib")
    pytest.importorskip("pycolmap")
    pytest.importorskip("torch")
    command = [sys.executable, BENCHMARKS / "tables.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, f"make tables writes them: {done.stdout}{done.stderr}"


def test_a_changed_figure_is_noticed(script):
    tables = script("tables")
    content = json.loads((RESULTS / "package.json").read_text())
    document = "before\n<!-- table: package -->\n<!-- end -->\nafter\n"
    filled = tables.fill(document, {"package": content})
    assert tables.fill(filled, {"package": content}) == filled
    assert filled.startswith("before\n<!-- table: package -->\n\n| ") and filled.endswith("|\n\n<!-- end -->\nafter\n")
    content["ms"]["import caransac"] += 1000
    assert tables.fill(filled, {"package": content}) != filled
    assert "Not measured" in tables.fill(filled, {})


def test_who_is_ahead_is_named(script):
    accuracy = script("tables_accuracy")
    leads = {"A": 0.04, "B": 0.2, "B, early stop": 0.3, "C": 0.1, "D": 1.0, "E": 0.06, "F": -3.0}
    assert accuracy.leaders(leads, 0.05, "+{:.1f}") == "D +1.0, B +0.3, C +0.1, and 1 more"
    assert accuracy.leaders({"A": 0.0}, 0.05, "+{:.1f}") == "none"
    rows = {"CA-RANSAC, early stop": (90.0, 60.0, 5.0), "LM-LO": (99.0, 99.0, 1.0), "PoseLib": (91.0, 59.0, 2.0)}
    ((title, mine, peers),) = accuracy.compared("pose", rows)
    assert (title, mine, peers) == ("pose", (90.0, 60.0, 5.0), {"PoseLib": (91.0, 59.0, 2.0)})
    assert not list(accuracy.compared("pose", {"PoseLib": (91.0, 59.0, 2.0)}))


@pytest.mark.parametrize(
    "name", ["absolute", "any_scene", "calibration", "focal", "hostile_databases", "lenses", "photos"]
)
def test_labels_are_those_of_rows_that_there_are_and_differ(script, name):
    """Tables show words for the short keys of a file; a key that was renamed would silently show itself."""
    labels = script("row_labels")
    text = json.loads((RESULTS / f"{name}.json").read_text())

    def keys(value):
        if isinstance(value, dict):
            yield from value
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from keys(each)

    there = set(keys(text))
    known = labels.FOCAL if name == "focal" else labels.LABELS[name]
    assert set(known) <= there
    assert len(set(known.values())) == len(known)


def test_focal_rows_are_in_words(script):
    label = script("row_labels").label
    assert label("focal", "uncertain 5%") == "focal length off by 5 %, `focal_deviation=0.05`"
    assert label("focal", "given 10%") == "focal length off by 10 %, passed as exact"
    assert label("focal", "zoomed, F with sizes, camera undecided") == (
        "second image zoomed by 1.5: fundamental matrix, image sizes given, `same_camera` not given"
    )


def test_every_table_is_in_a_document(script):
    marked = script("tables").MARKED
    documents = [ROOT / "README.md", RESULTS / "README.md", *(ROOT / "docs").glob("*.md")]
    shown = {found[2] for path in documents for found in marked.finditer(path.read_text())}
    assert shown == set(script("document_tables").TABLES)


def test_results_are_small_and_say_what_made_them(script):
    names = {step.name for step in script("publish").STEPS}
    lines = 0
    for path in RESULTS.iterdir():
        assert path.name == "README.md" or path.stem.split("-")[0] in names, f"no step makes {path.name}"
        assert path.suffix in (".json", ".md", ".svg")
        if path.suffix == ".json":
            text = path.read_text()
            made = json.loads(text)["made"]
            wanted = {"command", "version", "commit", "instruction_set", "cpu", "cores", "system", "versions"}
            assert made.keys() == wanted
            assert script("published").dump(json.loads(text)) == text
            lines += text.count("\n")
    assert lines < 8000


def test_the_worked_pair_is_as_its_file_says(script):
    """On another kind of processor the last digits differ; `python benchmarks/worked_pair.py` writes the file anew."""
    worked = script("worked_pair")
    pair = worked.make_worked_pair()
    found, published = (
        worked.describe(pair, worked.estimate(pair)),
        json.loads((RESULTS / "worked_pair.json").read_text()),
    )
    assert (found["matches"], found["right"]) == (published["matches"], published["right"])
    assert len(found["rounds"]) == len(published["rounds"])
    for step, written in zip(found["rounds"], published["rounds"], strict=True):
        assert step.keys() == written.keys()
        for name in step.keys() & {"likely", "found", "matches drawn", "noise", "threshold"}:
            assert step[name] == pytest.approx(written[name], rel=0.1)
    assert found["answer"].pop("degeneracy") == published["answer"].pop("degeneracy")
    for name, value in published["answer"].items():
        assert found["answer"][name] == pytest.approx(value, rel=0.05, abs=0.1)


def test_numbers_and_lines_of_a_file(script):
    published = script("published")
    content = {"a": {"b": [0.123456789, 1, None, True]}, "c": [{"text": "x" * 50, "n": 1e-9}] * 3, "d": "é"}
    text = published.dump(content)
    assert json.loads(text)["a"] == {"b": [0.12346, 1, None, True]}
    assert json.loads(text)["c"][0]["n"] == 1e-9
    assert max(map(len, text.splitlines())) <= published.WIDTH
    assert text.count("\n") < 10
    assert published.command_of(["benchmarks/x.py", "/a/b/c/d/val", "--out", "/tmp/y", "--seeds", "2"]) == (
        "python benchmarks/x.py c/d/val --seeds 2"
    )


def test_steps_are_left_out_kept_and_run(script, tmp_path, monkeypatch):
    publish = script("publish")
    made, data, results = [], tmp_path / "data", tmp_path / "results"
    (data / "here").mkdir(parents=True)

    def run(step, words, out, log):
        made.append((step.name, words))
        about = {
            "commit": publish.machine.commit(),
            "command": publish.command_of([f"benchmarks/{step.path.name}", *words]),
        }
        out.write_text(json.dumps({"made": about}))
        out.with_suffix(".md").write_text("")
        log.write_text("started\nno such lens\n")
        return {"dense": 1, "lenses": publish.LEFT_OUT}.get(step.name, 0)

    monkeypatch.setattr(publish, "run", run)
    monkeypatch.setattr(publish, "is_same_code", lambda commit: commit == publish.machine.commit())
    monkeypatch.setattr(publish, "ROOT", tmp_path)
    steps = [
        publish.Step("speed", data={"--data": ("here", "nowhere")}),
        publish.Step("focal", data={"": ("nowhere",)}, needs=""),
        publish.Step("nothing"),
        publish.Step("dense"),
        publish.Step("lenses"),
    ]
    first = dict(publish.publish(steps, data, results, tmp_path / "work", quick=False))
    assert made == [("speed", ["--data", str(data / "here")]), ("dense", []), ("lenses", [])]
    assert first["lenses"] == "left out: no such lens"
    assert first["speed"].startswith("made in")
    assert first["focal"] == "left out: no nowhere"
    assert first["nothing"] == "left out: no nothing.py"
    assert first["dense"].startswith("FAILED with exit code 1")
    assert not (results / "dense.json").exists()
    made.clear()
    assert dict(publish.publish(steps, data, results, tmp_path / "work", quick=False))["speed"] == "kept"
    assert [name for name, _ in made] == ["dense", "lenses"]
    steps[0] = publish.Step("speed", words=("--max-pairs", "3"), data={"--data": ("here",)})
    assert "made in" in dict(publish.publish(steps[:1], data, results, tmp_path / "work", quick=False))["speed"]


def test_times_are_not_measured_beside_other_times(script, tmp_path, monkeypatch):
    publish = script("publish")
    Step, running, beside, lock = publish.Step, [], [], threading.Lock()
    two_run = threading.Event()

    def make(step, *_):
        with lock:
            beside.extend((step.name, other) for other in running)
            running.append(step.name)
            if len(running) == 2:
                two_run.set()
        if step.name.startswith("lane"):
            assert two_run.wait(timeout=60)
        with lock:
            running.remove(step.name)
        return "made"

    monkeypatch.setattr(publish, "make", make)
    steps = [Step("lane a"), Step("lane b"), Step("clock 1", timed=True), Step("clock 2", timed=True)]
    steps += [Step("all 1", whole=True), Step("all 2", whole=True)]
    outcomes = dict(publish.publish(steps, tmp_path, tmp_path, tmp_path, quick=False, jobs=2))
    assert outcomes == dict.fromkeys((step.name for step in steps), "made")
    assert beside
    assert all(not name.startswith("all") for pair in beside for name in pair)
    assert all({name.partition(" ")[0] for name in pair} != {"clock"} for pair in beside)


def test_texts_and_results_do_not_change_the_code(script, tmp_path, monkeypatch):
    publish = script("publish")

    def git(*words):
        identity = ["-c", "user.name=n", "-c", "user.email=e"]
        done = subprocess.run(["git", "-C", tmp_path, *identity, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(name):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        git("add", "-A")
        git("commit", "-qm", name)
        return git("rev-parse", "--short=12", "HEAD")

    git("init", "-q")
    monkeypatch.setattr(publish, "ROOT", tmp_path)
    measured = commit("src/code.py")
    for name in ("benchmarks/results/speed.json", "README.md", "docs/guide.md"):
        commit(name)
        assert publish.is_same_code(measured)
    (tmp_path / "docs" / "guide.md").write_text("changed")
    assert publish.changed_files() == []
    (tmp_path / "src" / "new.py").write_text("")
    assert publish.changed_files() == ["?? src/new.py"]
    commit("src/new.py")
    assert not publish.is_same_code(measured)
    assert not publish.is_same_code("nothing")


def test_a_changed_tree_is_refused(script, monkeypatch, capsys):
    publish = script("publish")
    monkeypatch.setattr(publish, "changed_files", lambda: [" M src/caransac/options.py"])
    monkeypatch.setattr(sys, "argv", ["publish.py"])
    with pytest.raises(SystemExit):
        publish.main()
    assert "not clean:\n M src/caransac/options.py" in capsys.readouterr().err


def test_orders_that_differ_from_the_papers_are_said(script):
    paper = script("paper_rows")
    assert paper.verdict(2.0, 1.0, 0.3) == paper.verdict(-2.0, -1.0, 0.3) == "the same"
    assert paper.verdict(2.0, -1.0, 0.3) == "**differs**"
    assert paper.verdict(2.0, -0.2, 0.3) == "too close to say"
    assert paper.verdict(0.1, 1.0, 0.3) == "none in the paper"

    def row(method, auc5, auc1):
        return {
            "dataset": "rootsift/val",
            "problem": "E",
            "method": method,
            "figures": {"AUC5": [auc5, 0.1], "AUC1": [auc1, 0.1]},
        }

    found = [row("CA-RANSAC paper", 81, 57), row("CA-RANSAC paper -S", 79, 58), row("CA-RANSAC paper -C", 80, 50)]
    full, sampling = [line for line in paper.orders_table(found).splitlines() if line.startswith("| table 1")]
    assert full.endswith("| +7.6 / +4.1 | +2.0 / -1.0 | the same; in AUC@1 **differs** |")
    assert sampling.endswith("| +5.7 / +4.5 | -1.0 / +8.0 | **differs**; in AUC@1 the same |")
