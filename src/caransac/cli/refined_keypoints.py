"""The step of `caransac refine` and `caransac verify --images` that refines keypoints."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from caransac._support.files import check_no_input
from caransac._support.progress import Progress
from caransac.cli.quiet import note, say
from caransac.keypoint_refinement import (
    ColmapKeypoints,
    HlocKeypoints,
    KeypointSummary,
    read_refinement,
    refine_keypoints,
    work_file_of,
)
from caransac.keypoint_refinement.collection import Collection
from caransac.keypoint_refinement.work_file import WorkFile
from caransac.verification import BadPairError, choose_workers, open_executor

MOST_MISSING = 10  # maximum number of missing photographs in the summary
SOME_SKIPPED = 3  # exit code if pairs or photographs were skipped


@dataclass(frozen=True, kw_only=True)
class RefinedFiles:
    """Files with refined keypoints, whose pairs are to be verified again.

    Attributes:
        code: exit code.
        files: values of arguments of `caransac verify` that stand for these files.
        intermediate: file that is not needed after the verification, or None.
    """

    code: int
    files: dict[str, Any]
    intermediate: Path | None = None

    @property
    def need_verification(self) -> bool:
        """Whether the geometries may be outdated."""
        return self.intermediate is None or self.intermediate.exists()


def refine_database(arguments: argparse.Namespace, path: Path, out: Path | None) -> RefinedFiles:
    """Refine the keypoints of a COLMAP database, into a copy or in place. Do nothing if that was done before."""
    target = path if out is None else out
    files = {"database": target}
    if out is not None:
        check_no_input(out, [path], "--out:")
    refined = read_refinement(target) if target.exists() else None
    if out is None and refined is not None:
        note(arguments, f"caransac: the keypoints of {path} are refined already")
        work_file_of(path).unlink(missing_ok=True)
        return RefinedFiles(code=0, files=files)
    collection = ColmapKeypoints(path, arguments.images, out, keep_matches=keeps_matches(arguments))
    try:
        if target.exists() and out is not None:
            if refined is None or refined[0] != collection.identity:
                raise ValueError(f"--out: {out} exists: choose another path, or remove it")
            note(arguments, f"caransac: the keypoints of {out} are refined already")
            work_file_of(out).unlink(missing_ok=True)
            return RefinedFiles(code=0, files=files)
        return RefinedFiles(code=refine_collection(collection, work_file_of(target), arguments), files=files)
    finally:
        collection.close()


def refine_files(arguments: argparse.Namespace) -> RefinedFiles:
    """Refine the keypoints of hloc's files into new files."""
    features, matches = arguments.features, arguments.matches
    out = arguments.out or matches.with_name(f"{matches.stem}-refined.h5")
    collection = HlocKeypoints(
        features,
        matches,
        arguments.pairs,
        arguments.images,
        out_features=arguments.out_features or features.with_name(f"{features.stem}-refined.h5"),
        out=out,
        keep_matches=keeps_matches(arguments),
    )
    try:
        code = 0
        if collection.is_refined:
            note(arguments, f"caransac: the keypoints of {collection.features} are refined already")
        else:
            code = refine_collection(collection, work_file_of(out), arguments)
    finally:
        collection.close()
    files = {"features": collection.features, "matches": collection.agreeing_matches, "out": out}
    return RefinedFiles(code=code, files=files, intermediate=collection.agreeing_matches)


def refine_collection(collection: Collection, work_path: Path, arguments: argparse.Namespace) -> int:
    """Refine a collection, show the progress, print a summary and return the exit code."""
    problems = dict[str, str]()
    lost = list[BadPairError]()
    workers = choose_workers(arguments.workers, len(collection.pairs))
    shown = Progress(quiet=arguments.quiet)
    with WorkFile(work_path, collection.identity) as work:
        with open_executor(workers, arguments.scheduler) as (executor, in_flight), shown as progress:

            def on_batch(done: int, total: int) -> None:
                progress.show("align patches", done, total, unit="pairs")

            def on_problem(name: str, reason: str) -> None:
                if arguments.strict:
                    raise ValueError(f"the photograph of {name} cannot be used: {reason}")
                problems[name] = reason

            summary = refine_keypoints(
                collection,
                work,
                executor,
                in_flight=in_flight,
                on_batch=on_batch,
                on_problem=on_problem,
                on_skipped=None if arguments.strict else lost.append,
                on_lost_worker=lambda text: say(f"caransac: {text}; another one takes its place"),
            )
        work.remove()
    print(summarise_keypoints(summary, kept=keeps_matches(arguments)))
    for line in describe_problems(problems):
        say(f"caransac: {line}")
    for error in lost:
        say(f"caransac: skipped {error.names[0]} and {error.names[1]}: {error}")
    return SOME_SKIPPED if problems or lost else 0


def keeps_matches(arguments: argparse.Namespace) -> bool:
    """Return whether to keep all matches. `caransac verify` has no option for that."""
    return bool(getattr(arguments, "keep_matches", False))


def summarise_keypoints(summary: KeypointSummary, *, kept: bool) -> str:
    """Return the summary of a refinement."""
    disagree = summary.matches - summary.agreeing - summary.unjudged
    share = f" ({disagree / max(summary.matches, 1):.1%})"
    refused = f"; {summary.refused} would move too far and stay" if summary.refused else ""
    return (
        f"Refined {summary.moved} keypoints in {summary.pairs} pairs: they moved by {summary.median_shift_px:.2f} px "
        f"in the median{refused}\n"
        f"Matches: the patches of {disagree} of {summary.matches}{share} do not agree; they are "
        f"{'kept' if kept else 'removed'}. {summary.median_residual_px:.3f} px remain in the median"
    )


def describe_problems(problems: dict[str, str]) -> list[str]:
    """Return lines about photographs that cannot be used, for the first few one by one."""
    if not problems:
        return []
    lines = [f"no photograph of {name}: {reason}" for name, reason in list(problems.items())[:MOST_MISSING]]
    more = len(problems) - len(lines)
    lines += [f"and {more} more"] if more else []
    return [*lines, f"{len(problems)} images have no photograph: their matches stay"]
