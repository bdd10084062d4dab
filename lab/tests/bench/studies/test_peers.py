"""The comparison with the peers: which methods run, how often, and by which stopping rule."""

from argparse import Namespace

from caransac_lab.bench.studies import peers


def test_ours_have_several_seeds_and_some_methods_stop_by_their_own_rule(monkeypatch, tmp_path):
    seen = []

    def bench(work, words):
        at = words.index("--methods"), words.index("--seeds")
        methods, seeds, adaptive = words[at[0] + 1 : at[1]], words[at[1] + 1], "--adaptive" in words
        seen.append((*methods, seeds, adaptive))
        return [{"dataset": "val", "problem": "E", "method": method, "folder": work.name} for method in methods]

    monkeypatch.setattr(peers, "bench", bench)
    asked = Namespace(study="unscored", folders=["val=none"], max_pairs="2", seeds="3", quick=False)
    rows = peers.run_table(asked, tmp_path)
    assert [(each[-2], each[-1]) for each in seen] == [("3", False), ("3", True), ("1", False), ("1", True)]
    names = [row["method"] for row in rows]
    assert {"CA-RANSAC", "CA-RANSAC, early stop", "CA-RANSAC paper", "LM-LO", "peers", "PoseLib, adaptive"} <= set(
        names
    )
    assert len(names) == len(set(names))
    assert len({row["folder"] for row in rows}) == 4, "a journal has the outcomes of one run"
    seen.clear()
    peers.run_table(Namespace(**vars(asked) | {"quick": True}), tmp_path)
    assert {method for each in seen for method in each[:-2]} == {"CA-RANSAC", "LM-LO", "PoseLib"}
