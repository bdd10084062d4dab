"""caransac verify: geometric verification of the matched pairs of a COLMAP database or of hloc's files."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from caransac._support.batch import count_cores
from caransac._support.progress import Progress
from caransac.api.camera_pooling import CameraEstimate
from caransac.camera_priors import EXIF_FOCAL_DEVIATION, check_deviation, split_deviation
from caransac.cli import two_views
from caransac.cli.quiet import add_quiet, note, say, show
from caransac.cli.refined_keypoints import SOME_SKIPPED, RefinedFiles, refine_database, refine_files
from caransac.keypoint_refinement import read_refinement
from caransac.options import MaxError
from caransac.verification import (
    BadPairError,
    CalibrationPolicy,
    ColmapDatabase,
    HlocFiles,
    PairGeometry,
    PairReport,
    Source,
    VerificationOptions,
    choose_workers,
    describe_settings,
    open_executor,
    verify,
)
from caransac.verification.executors import PAIRS_PER_WORKER
from caransac.verification.pair_records import MAX_ERROR_PX, MIN_CONFIDENCE
from caransac.verification.pair_reports import check_pair_reports_path, write_pair_reports
from caransac.verification.provenance import describe_kept

MOST_CAMERAS = MOST_SKIPPED = 10  # maximum number in the summary
UNKNOWN_REASONS = {"too_few_informative": "too few pairs constrain it", "disagreement": "its pairs disagree"}
USAGE = """caransac verify DATABASE.db [options]
       caransac verify --features H5 --matches H5 --pairs TXT [options]"""
DESCRIPTION = """Estimate the two-view geometry of every matched pair and keep the matches that
agree with it. For a COLMAP database it replaces COLMAP's own geometric
verification: it reads matches and writes two_view_geometries. For hloc's files
it writes a file of matches with only the inliers."""
EXAMPLES = """examples:
  COLMAP, after matching with --FeatureMatching.skip_geometric_verification 1;
  then run the mapper as usual
    caransac verify database.db
    caransac verify database.db --min-confidence 0.5 --report pairs.csv
  the same, and refine the keypoints in the photographs (see caransac refine)
    caransac verify database.db --images photos
  hloc
    caransac verify --features feats.h5 --matches matches.h5 --pairs pairs.txt \\
        --cameras cameras.txt --out verified.h5
  a Dask cluster, with certificates: anyone who can reach an open cluster can
  run code on it
    caransac verify database.db --scheduler tls://HOST:8786

To continue an interrupted run, give the same command again. The result is the
same as without the interruption.
"""


def add_database_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    *,
    about: str,
    usage: str,
    text: str,
    examples: str,
) -> argparse.ArgumentParser:
    """Add a command for COLMAP's database or hloc's files, with the arguments that both commands share."""
    parser = commands.add_parser(
        name,
        help=about,
        usage=usage,
        description=text,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("database", nargs="?", type=Path, metavar="DATABASE.db", help="COLMAP's database")
    add_quiet(parser)
    return parser


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    about = "verify the matched pairs of a COLMAP database or of hloc's files geometrically"
    parser = add_database_command(commands, "verify", about=about, usage=USAGE, text=DESCRIPTION, examples=EXAMPLES)
    estimation = add_estimation(parser)
    estimation.add_argument(
        "--ratio-from-descriptors",
        action="store_true",
        help="compute second-nearest-neighbour ratios from the SIFT descriptors of the database, and use them as "
        "scores: slower, but better at low inlier ratios",
    )
    run = parser.add_argument_group("the run")
    run.add_argument("--overwrite", action="store_true", help="verify all pairs, even if they already have a geometry")
    run.add_argument(
        "--write-focals",
        action="store_true",
        help="after the last pair, write the focal lengths that were estimated from all pairs of a camera into the "
        "database as priors; a distorted lens becomes SIMPLE_RADIAL with its k1",
    )
    run.add_argument(
        "--images",
        type=Path,
        metavar="DIR",
        help="folder of the photographs: after the verification, refine the keypoints as 'caransac refine' does, a "
        "database in place and hloc's files into new ones, and verify again",
    )
    add_run(run)
    hloc = add_hloc(parser)
    hloc.add_argument(
        "--out", type=Path, metavar="H5", help="inlier matches, in hloc's layout (default: MATCHES-verified.h5)"
    )
    parser.set_defaults(run=run_verify, how_to_continue="the same command continues")


def add_estimation(parser: argparse.ArgumentParser, max_error_px: MaxError = MAX_ERROR_PX) -> argparse._ArgumentGroup:
    """Add the options of the estimation of every pair. Return their group."""
    defaults = VerificationOptions()
    how = two_views.add_options(parser, replace(defaults.estimation, max_error_px=max_error_px))
    how.add_argument(
        "--calibrated",
        choices=get_args(CalibrationPolicy),
        default="auto",
        help="when to estimate a pose instead of a fundamental matrix. auto: if both focal lengths are known, from a "
        "prior or from all pairs of a camera together; always: treat all cameras of the input as exact; never: "
        "ignore all cameras (default: %(default)s)",
    )
    how.add_argument(
        "--focal-deviation",
        type=parse_deviation,
        metavar="P",
        help="relative standard deviation of prior focal lengths, 0.04 or 4%%; 0 means exact "
        f"(default: {EXIF_FOCAL_DEVIATION} for the priors of a database, 0 for --cameras)",
    )
    how.add_argument(
        "--min-inliers",
        type=int,
        default=defaults.min_inliers,
        metavar="N",
        help="reject pairs with fewer inliers (default: %(default)s)",
    )
    how.add_argument(
        "--min-confidence",
        type=float,
        default=defaults.min_confidence,
        metavar="P",
        help=f"reject pairs with a lower confidence (default: {MIN_CONFIDENCE} if the focal lengths of a pair are "
        "known, otherwise 0)",
    )
    return how


def add_run(run: argparse._ArgumentGroup) -> None:
    """Add the options of a run with many pairs."""
    run.add_argument(
        "--strict",
        action="store_true",
        help="stop at the first pair that cannot be read. By default such pairs are skipped and reported, and the exit "
        f"code is {SOME_SKIPPED}",
    )
    run.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="write one line per pair, .csv or .parquet (needs the extra 'reports'): image1, image2, matches, inliers, "
        "ratio, confidence, config, ms, the focal length of each image with its deviation and source, and the problem "
        "of a skipped pair",
    )
    run.add_argument(
        "--workers",
        type=int,
        default=count_cores(),
        metavar="N",
        help=f"maximum number of processes; one starts for every {PAIRS_PER_WORKER} pairs. It does not change the "
        "result (default: all cores, %(default)s)",
    )
    run.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="run on a Dask cluster: tls://host:8786 with the certificates of Dask's settings, or tcp://host:8786 "
        "(needs the extra 'cluster')",
    )


def add_hloc(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options for hloc's files. Return their group."""
    hloc = parser.add_argument_group("hloc, instead of a database (needs the extra 'hloc')")
    hloc.add_argument("--features", type=Path, metavar="H5", help="keypoints")
    hloc.add_argument("--matches", type=Path, metavar="H5", help="matches; their scores are used as confidences")
    hloc.add_argument("--pairs", type=Path, metavar="TXT", help="two image names per line")
    hloc.add_argument(
        "--cameras",
        type=Path,
        metavar="TXT",
        help="intrinsics, 'name MODEL width height params...' per line; pairs without them get a fundamental matrix",
    )
    return hloc


def run_verify(arguments: argparse.Namespace) -> int:
    """Verify all pairs, refine the keypoints if there are photographs, and return the exit code."""
    if arguments.images is None:
        return verify_all(arguments)
    again = with_values(arguments, max_error="auto", ratio_from_descriptors=False)  # refined keypoints are precise
    if arguments.database is not None:
        if arguments.database.exists() and read_refinement(arguments.database) is not None:  # an earlier run did it
            return verify_refined(again, refine_database(arguments, arguments.database, None))
        first = verify_all(with_values(arguments, report=None))
        found = refine_database(arguments, arguments.database, None)
    else:
        first = verify_all(with_values(arguments, report=None))
        verified = arguments.out or default_out(arguments.matches)
        found = refine_files(with_values(arguments, matches=verified, out=None, out_features=None))
    return max(first, verify_refined(with_values(again, overwrite=False), found))


def verify_refined(arguments: argparse.Namespace, found: RefinedFiles) -> int:
    """Verify the pairs of refined keypoints and return the exit code."""
    code = found.code
    if found.need_verification:
        code = max(code, verify_all(with_values(arguments, **found.files), notes=False))
    if found.intermediate is not None:
        found.intermediate.unlink(missing_ok=True)
    return code


def with_values(arguments: argparse.Namespace, **values: object) -> argparse.Namespace:
    """Return a copy of the arguments with other values."""
    return argparse.Namespace(**{**vars(arguments), **values})


def verify_all(arguments: argparse.Namespace, *, notes: bool = True) -> int:
    """Verify all pairs, show the progress, print a summary and return the exit code.

    Args:
        arguments: arguments of the command.
        notes: whether to describe pairs that were verified before with other settings.
    """
    options = VerificationOptions(
        estimation=two_views.read_options(arguments),
        min_inliers=arguments.min_inliers,
        min_confidence=arguments.min_confidence,
    )
    if arguments.report is not None:
        inputs = (getattr(arguments, name) for name in ("database", "features", "matches", "pairs", "cameras", "out"))
        check_pair_reports_path(arguments.report, [path for path in inputs if path is not None])
    of_source = ("calibrated", "focal_deviation", "ratio_from_descriptors", "cameras")
    settings = describe_settings(options, **{name: getattr(arguments, name) for name in of_source})
    source, place = open_source(arguments, settings)
    for line in describe_kept(source.kept_settings, settings) if notes else ():
        note(arguments, f"caransac: {line}")
    reports, skipped, started = list[PairReport](), list[PairReport](), time.perf_counter()
    try:
        verify_source(source, options, arguments, reports, skipped)
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(f"{len(reports)} of {len(source.pending)} pairs are done") from error
    finally:
        source.close()
        if arguments.report is not None:
            write_pair_reports(arguments.report, [*source.kept, *reports, *skipped])
    print(summarise([*source.kept, *reports], len(source.kept), time.perf_counter() - started))
    for line in describe_focals(source.pooled):
        print(line)
    show(f"Geometries: {place}")
    if arguments.report is not None:
        show(f"Report: {arguments.report}")
    for line in describe_skipped(skipped):
        say(f"caransac: {line}")
    return SOME_SKIPPED if skipped else 0


def verify_source(
    source: Source,
    options: VerificationOptions,
    arguments: argparse.Namespace,
    reports: list[PairReport],
    skipped: list[PairReport],
) -> None:
    """Verify a source, show the progress, and append to the reports of verified and skipped pairs."""
    asked = sum(len(unknown.pairs) for unknown in source.unpooled.values())
    workers = choose_workers(arguments.workers, max(len(source.pending), asked))
    shown = Progress(quiet=arguments.quiet)
    with open_executor(workers, arguments.scheduler) as (executor, in_flight), shown as progress:

        def on_batch(found: Sequence[PairGeometry]) -> None:
            reports.extend(PairReport.of_geometry(each).with_focals(*source.focals(each.key)) for each in found)
            progress.show("verify", len(reports) + len(skipped), len(source.pending), unit="pairs")

        def on_profiles(done: int) -> None:
            if asked:
                progress.show("focal lengths", done, asked, unit="pairs")
            if done == asked:
                on_batch([])  # the clock of the verification starts here

        def on_skipped(error: BadPairError) -> None:
            skipped.append(PairReport.of_skipped(error))

        on_profiles(0)
        verify(
            source,
            executor,
            options,
            in_flight=in_flight,
            on_batch=on_batch,
            on_profiles=on_profiles,
            on_skipped=None if arguments.strict else on_skipped,
            on_lost_worker=lambda text: say(f"caransac: {text}; another one takes its place"),
        )


def open_source(arguments: argparse.Namespace, settings: str) -> tuple[Source, Path]:
    """Return the database or hloc's files, and the file for the geometries."""
    hloc = (arguments.features, arguments.matches, arguments.pairs)
    if arguments.database is not None:
        if any((*hloc, arguments.out, arguments.cameras)):
            raise ValueError("give DATABASE.db, or --features, --matches and --pairs, not both")
        database = ColmapDatabase(
            arguments.database,
            calibrated=arguments.calibrated,
            focal_deviation=arguments.focal_deviation,
            write_focals=arguments.write_focals,
            overwrite=arguments.overwrite,
            ratio_from_descriptors=arguments.ratio_from_descriptors,
            settings=settings,
            strict=arguments.strict,
        )
        return database, arguments.database
    if not all(hloc):
        raise ValueError("give DATABASE.db, or all of --features, --matches and --pairs")
    if arguments.ratio_from_descriptors:
        raise ValueError("--ratio-from-descriptors reads a COLMAP database; hloc's matches have scores of their own")
    if arguments.write_focals:
        raise ValueError("--write-focals writes to a COLMAP database; hloc's files have no cameras")
    out = arguments.out or default_out(arguments.matches)
    files = HlocFiles(
        *hloc,
        out,
        cameras=arguments.cameras,
        calibrated=arguments.calibrated,
        focal_deviation=arguments.focal_deviation or 0.0,
        overwrite=arguments.overwrite,
        settings=settings,
        strict=arguments.strict,
    )
    return files, out


def default_out(matches: Path) -> Path:
    """Return the file for the inliers of a file of matches."""
    return matches.with_name(f"{matches.stem}-verified.h5")


def parse_deviation(text: str) -> float:
    """Parse a relative deviation from 0 to 1, written as ``0.04`` or ``4%``."""
    try:
        deviation = split_deviation(f"±{text}")[1]
        check_deviation(deviation)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a relative deviation, such as 0.04 or 4%") from error
    return deviation


def describe_focals(pooled: Mapping[int, CameraEstimate]) -> list[str]:
    """Return lines about pooled focal lengths, for the first few cameras one by one."""
    lines = []
    for number, found in sorted(pooled.items()):
        asked = f"{found.num_informative} of {found.num_pairs} pairs constrain it"
        asked += f", {found.num_agreeing} of these agree" if found.num_agreeing else ""
        if found.focal_px is None or found.deviation is None:
            lines.append(f"Camera {number}: focal length unknown, {UNKNOWN_REASONS[found.reason]} ({asked})")
        else:
            lens = "" if found.k1 is None else f", k1 {found.k1:.3f} ± {found.k1_deviation:.3f}"
            focal = f"focal length {found.focal_px:.1f} px ± {found.deviation:.1%}"
            lines.append(f"Camera {number}: {focal}{lens} ({asked})")
    more = len(lines) - MOST_CAMERAS
    return lines if more <= 0 else [*lines[:MOST_CAMERAS], f"and {more} more cameras: see the report"]


def describe_skipped(skipped: Sequence[PairReport]) -> list[str]:
    """Return lines about skipped pairs, for the first few one by one."""
    lines = [f"skipped {report.image1} and {report.image2}: {report.problem}" for report in skipped[:MOST_SKIPPED]]
    more = len(skipped) - len(lines)
    return [*lines, f"skipped {more} more pairs: see --report"] if more > 0 else lines


def summarise(reports: Sequence[PairReport], num_kept: int, elapsed_s: float) -> str:
    """Return the summary of a run as one line."""
    verified = len(reports) - num_kept
    kinds = ", ".join(
        f"{count} {kind.replace('_', ' ')}" for kind, count in Counter(r.config for r in reports).most_common()
    )
    kept = f" and kept {num_kept} from before" if num_kept else ""
    speed = f" in {elapsed_s:.1f} s ({verified / elapsed_s:.1f} pairs per second)" if verified else ""
    return f"Verified {verified} pairs{speed}{kept}: {kinds}"
