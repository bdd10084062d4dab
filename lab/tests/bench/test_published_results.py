"""Published results: tables match their files, files are small, and finished steps are recognised."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from caransac_lab.bench import document_tables, publication, row_labels, steps
from caransac_lab.bench.studies import paper_rows, worked_pair
from caransac_lab.cli import main

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "benchmarks" / "results"

pytestmark = pytest.mark.skipif(not RESULTS.is_dir(), reason="source distributions have no results")


@pytest.mark.slow
def test_every_table_agrees_with_its_file():
    pytest.importorskip("poselib")
    pytest.importorskip("pycolmap")
    pytest.importorskip("torch")
    command = [sys.executable, "-m", "caransac_lab", "publish", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, f"make tables writes them: {done.stdout}{done.stderr}"


def test_a_changed_figure_is_noticed():
    content = json.loads((RESULTS / "package.json").read_text())
    document = "before\n<!-- table: package -->\n<!-- end -->\nafter\n"
    filled = document_tables.fill(document, {"package": content})
    assert document_tables.fill(filled, {"package": content}) == filled
    assert filled.startswith("before\n<!-- table: package -->\n\n| ") and filled.endswith("|\n\n<!-- end -->\nafter\n")
    content["ms"]["import caransac"] += 1000
    assert document_tables.fill(filled, {"package": content}) != filled
    assert "Not measured" in document_tables.fill(filled, {})


def test_who_is_ahead_is_named():
    leads = {"A": 0.04, "B": 0.2, "B, early stop": 0.3, "C": 0.1, "D": 1.0, "E": 0.06, "F": -3.0}
    assert document_tables.leaders(leads, 0.05, "+{:.1f}") == "D +1.0, B +0.3, C +0.1, and 1 more"
    assert document_tables.leaders({"A": 0.0}, 0.05, "+{:.1f}") == "none"
    rows = {"CA-RANSAC, early stop": (90.0, 60.0, 5.0), "LM-LO": (99.0, 99.0, 1.0), "PoseLib": (91.0, 59.0, 2.0)}
    ((title, mine, peers),) = document_tables.compared("pose", rows)
    assert (title, mine, peers) == ("pose", (90.0, 60.0, 5.0), {"PoseLib": (91.0, 59.0, 2.0)})
    assert not list(document_tables.compared("pose", {"PoseLib": (91.0, 59.0, 2.0)}))


def test_match_sets_with_and_without_scores_are_compared():
    """The first screen has the best row of a library, and the tables of matchers the best of all other peers."""

    def row(dataset, method, auc5, problem="E"):
        figures = {"AUC5": [auc5, 0.1], "AUC1": [auc5 / 2, 0.1]}
        return {
            "dataset": dataset,
            "method": method,
            "problem": problem,
            "pairs": 7,
            "ms": 100 - auc5,
            "figures": figures,
        }

    scored = [
        row("rootsift/val", method, auc5)
        for method, auc5 in (
            ("CA-RANSAC, early stop", 80.0),
            ("CA-RANSAC", 81.0),
            ("PoseLib PROSAC", 70.0),
            ("PoseLib, adaptive", 71.0),
            ("OpenCV USAC_DEFAULT", 60.0),
            ("OpenCV USAC_DEFAULT, adaptive", 72.0),
            ("COLMAP", 65.0),
        )
    ]
    unscored = [row("xfeat/val=none", "CA-RANSAC, early stop", 50.0), row("xfeat/val=none", "COLMAP", 51.0)]
    results = {"peers": {"rows": [*scored, row("rootsift/val", "COLMAP", 99.0, "F")]}, "unscored": {"rows": unscored}}
    first, second = document_tables.matchers_poses(results).splitlines()[2:]
    assert first.startswith(
        "| RootSIFT, 7 pairs | 80.0 / 40.0, 20.0 | **81.0** / **40.5**, **19.0** |  |  | 70.0 / 35.0,"
    )
    assert first.endswith("| OpenCV USAC_DEFAULT, adaptive: 72.0 / 36.0, 28.0 |")
    assert second.startswith("| XFeat, no scores, 7 pairs | 50.0 / 25.0, 50.0 |")
    assert second.endswith("| COLMAP: **51.0** / **25.5**, **49.0** |")
    first, second = document_tables.losses(results).splitlines()[2:]
    assert first == "| pose, RootSIFT | none | none | none |"
    assert second == "| pose, XFeat, no scores | COLMAP +1.0 | COLMAP +0.5 | none |"


def test_the_first_table_compares_photographs_with_matches_and_peers():
    rows = {
        name: {"AUC5": auc5, "AUC1": auc5 / 2, "ms": 1.0}
        for name, auc5 in (("matches alone", 80.0), ("with photographs", 90.0), ("PoseLib", 85.0))
    } | {"OpenCV USAC_MAGSAC": {"AUC5": 70.0, "AUC1": 10.0, "ms": 2.0}}
    results = {"photographs": {"tables": {"xfeat/val=confidence": {"pairs": 7, "rows": rows}}}}
    line = "| XFeat | 80.0 / 40.0 | 90.0 / 45.0 | 85.0 / 42.5 | 70.0 / 10.0 |"
    assert document_tables.first_screen(results).splitlines()[2:] == [line]


@pytest.mark.parametrize(
    "name", ["absolute", "any_scene", "calibration", "focal", "hostile_databases", "lenses", "photos"]
)
def test_labels_belong_to_existing_rows_and_differ(name):
    """Tables show words instead of the short keys of a file. A renamed key would be shown unchanged."""
    text = json.loads((RESULTS / f"{name}.json").read_text())

    def keys(value):
        if isinstance(value, dict):
            yield from value
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from keys(each)

    there = set(keys(text))
    known = row_labels.FOCAL if name == "focal" else row_labels.LABELS[name]
    assert set(known) <= there
    assert len(set(known.values())) == len(known)


def test_focal_rows_are_in_words():
    label = row_labels.label
    assert label("focal", "uncertain 5%") == "focal length off by 5 %, `focal_deviation=0.05`"
    assert label("focal", "given 10%") == "focal length off by 10 %, passed as exact"
    assert label("focal", "zoomed, F with sizes, camera undecided") == (
        "second image zoomed by 1.5: fundamental matrix, image sizes given, `same_camera` not given"
    )


def test_every_table_is_in_a_document():
    documents = [ROOT / "README.md", RESULTS / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {found[2] for path in documents for found in document_tables.MARKED.finditer(path.read_text())}
    assert shown == set(document_tables.TABLES)


def test_results_are_small_and_contain_their_command():
    names = {step.name for step in steps.STEPS}
    lines = 0
    for path in RESULTS.iterdir():
        assert path.name == "README.md" or path.stem.split("-")[0] in names, f"no step creates {path.name}"
        assert path.suffix in (".json", ".md", ".svg")
        if path.suffix == ".json":
            text = path.read_text()
            made = json.loads(text)["made"]
            wanted = {"command", "version", "commit", "instruction_set", "cpu", "cores", "system", "versions"}
            assert made.keys() == wanted
            assert publication.dump(json.loads(text)) == text
            lines += text.count("\n")
    assert lines < 8000


def test_the_worked_pair_agrees_with_its_file():
    """The last digits depend on the processor; `caransac-lab study worked_pair` writes the file again."""
    pair = worked_pair.make_worked_pair()
    found, published = (
        worked_pair.describe(pair, worked_pair.estimate(pair)),
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


def test_numbers_and_lines_of_a_file():
    content = {"a": {"b": [0.123456789, 1, None, True]}, "c": [{"text": "x" * 50, "n": 1e-9}] * 3, "d": "é"}
    text = publication.dump(content)
    assert json.loads(text)["a"] == {"b": [0.12346, 1, None, True]}
    assert json.loads(text)["c"][0]["n"] == 1e-9
    assert max(map(len, text.splitlines())) <= publication.WIDTH
    assert text.count("\n") < 10
    words = ["study", "x", "/a/b/c/d/val", "--out", "/tmp/y", "--seeds", "2"]
    assert publication.command_of(words) == "caransac-lab study x c/d/val --seeds 2"


def test_steps_are_left_out_kept_and_run(tmp_path, monkeypatch):
    made, data, results = [], tmp_path / "data", tmp_path / "results"
    (data / "here").mkdir(parents=True)

    def run(words, out, log):
        made.append(words[1:])
        about = {"commit": steps.machine.commit(), "command": publication.command_of(words)}
        out.write_text(json.dumps({"made": about}))
        out.with_suffix(".md").write_text("")
        log.write_text("started\nno such lens\n")
        return {"dense": 1, "lenses": publication.LEFT_OUT}.get(words[1], 0)

    monkeypatch.setattr(steps, "run", run)
    monkeypatch.setattr(steps, "is_same_code", lambda commit: commit == steps.machine.commit())
    monkeypatch.setattr(steps, "ROOT", tmp_path)
    chosen = [
        steps.Step("speed", data={"--data": ("here", "here=none", "nowhere", "nowhere=none")}),
        steps.Step("focal", data={"": ("nowhere",)}, needs=""),
        steps.Step("dense"),
        steps.Step("lenses"),
    ]
    first = dict(steps.publish(chosen, data, results, tmp_path / "work", quick=False))
    assert made == [["speed", "--data", f"{data}/here", f"{data}/here=none"], ["dense"], ["lenses"]]
    assert first["lenses"] == "left out: no such lens"
    assert first["speed"].startswith("made in")
    assert first["focal"] == "left out: no nowhere"
    assert first["dense"].startswith("FAILED with exit code 1")
    assert not (results / "dense.json").exists()
    made.clear()
    assert dict(steps.publish(chosen, data, results, tmp_path / "work", quick=False))["speed"] == "kept"
    assert made == [["dense"], ["lenses"]]
    chosen[0] = steps.Step("speed", words=("--max-pairs", "3"), data={"--data": ("here",)})
    assert "made in" in dict(steps.publish(chosen[:1], data, results, tmp_path / "work", quick=False))["speed"]


def test_timed_steps_do_not_run_at_the_same_time(tmp_path, monkeypatch):
    Step, running, beside, lock = steps.Step, [], [], threading.Lock()
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

    monkeypatch.setattr(steps, "make", make)
    chosen = [Step("lane a"), Step("lane b"), Step("clock 1", timed=True), Step("clock 2", timed=True)]
    chosen += [Step("all 1", whole=True), Step("all 2", whole=True)]
    outcomes = dict(steps.publish(chosen, tmp_path, tmp_path, tmp_path, quick=False, jobs=2))
    assert outcomes == dict.fromkeys((step.name for step in chosen), "made")
    assert beside
    assert all(not name.startswith("all") for pair in beside for name in pair)
    assert all({name.partition(" ")[0] for name in pair} != {"clock"} for pair in beside)


def test_texts_and_results_do_not_change_the_code(tmp_path, monkeypatch):

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
    monkeypatch.setattr(steps, "ROOT", tmp_path)
    measured = commit("src/code.py")
    for name in ("benchmarks/results/speed.json", "README.md", "docs/guide.md"):
        commit(name)
        assert steps.is_same_code(measured)
    (tmp_path / "docs" / "guide.md").write_text("changed")
    assert steps.changed_files() == []
    (tmp_path / "src" / "new.py").write_text("")
    assert steps.changed_files() == ["?? src/new.py"]
    commit("src/new.py")
    assert not steps.is_same_code(measured)
    assert not steps.is_same_code("nothing")


def test_a_changed_tree_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(steps, "changed_files", lambda: [" M src/caransac/options.py"])
    assert main(["publish"]) == 2
    assert "not clean:  M src/caransac/options.py" in capsys.readouterr().err


def test_a_folder_without_pairs_is_refused(tmp_path, capsys):
    """A wrong folder would leave out most steps, and users would notice it only after an hour."""
    assert main(["publish", "--data", str(tmp_path)]) == 2
    assert f"no folder realpairs in {tmp_path}" in capsys.readouterr().err


def test_orders_that_differ_from_the_papers_are_reported():
    assert paper_rows.verdict(2.0, 1.0, 0.3) == paper_rows.verdict(-2.0, -1.0, 0.3) == "the same"
    assert paper_rows.verdict(2.0, -1.0, 0.3) == "**differs**"
    assert paper_rows.verdict(2.0, -0.2, 0.3) == "too close to say"
    assert paper_rows.verdict(0.1, 1.0, 0.3) == "none in the paper"

    def row(method, auc5, auc1):
        return {
            "dataset": "rootsift/val",
            "problem": "E",
            "method": method,
            "figures": {"AUC5": [auc5, 0.1], "AUC1": [auc1, 0.1]},
        }

    found = [row("CA-RANSAC paper", 81, 57), row("CA-RANSAC paper -S", 79, 58), row("CA-RANSAC paper -C", 80, 50)]
    full, sampling = [line for line in paper_rows.orders_table(found).splitlines() if line.startswith("| table 1")]
    assert full.endswith("| +7.6 / +4.1 | +2.0 / -1.0 | the same; in AUC@1 **differs** |")
    assert sampling.endswith("| +5.7 / +4.5 | -1.0 / +8.0 | **differs**; in AUC@1 the same |")
