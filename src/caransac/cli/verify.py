"""caransac verify: the geometry of every matched pair of a COLMAP database, or of hloc's files."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from caransac._support.batch import count_cores
from caransac._support.progress import Progress
from caransac.cli import estimation
from caransac.verification import (
    CalibrationPolicy,
    ColmapDatabase,
    HlocFiles,
    PairGeometry,
    PairReport,
    Source,
    VerificationOptions,
    open_executor,
    verify,
)
from caransac.verification.pair_reports import check_pair_reports_path, write_pair_reports

USAGE = """caransac verify DATABASE.db [options]
       caransac verify --features H5 --matches H5 --pairs TXT [options]"""
DESCRIPTION = """Estimate the two-view geometry of every matched pair and keep the matches that
agree with it. In a COLMAP database it takes the place of COLMAP's own geometric
verification: it reads matches and writes two_view_geometries. From hloc's files
it makes a matches file that has the inliers alone."""
EXAMPLES = """examples:
  COLMAP, after matching with --FeatureMatching.skip_geometric_verification 1;
  then run the mapper as usual
    caransac verify database.db
    caransac verify database.db --min-confidence 0.5 --report pairs.csv
  hloc
    caransac verify --features feats.h5 --matches matches.h5 --pairs pairs.txt \\
        --cameras cameras.txt --out verified.h5
  many machines: 'dask scheduler' on one, 'dask worker tcp://HOST:8786' on all
    caransac verify database.db --scheduler tcp://HOST:8786

An interrupted run continues when the same command is given again (without
--overwrite), and ends with the same result as one that was not interrupted.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "verify",
        help="find the geometry of every matched pair of a COLMAP database or of hloc's files",
        usage=USAGE,
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("database", nargs="?", type=Path, metavar="DATABASE.db", help="COLMAP's database")
    _add_estimation(parser)
    _add_run(parser)
    _add_hloc(parser)
    parser.set_defaults(run=run_verify)


def _add_estimation(parser: argparse.ArgumentParser) -> None:
    defaults = VerificationOptions()
    how = estimation.add_options(parser, defaults.estimation)
    how.add_argument(
        "--calibrated",
        choices=get_args(CalibrationPolicy),
        default="auto",
        help="estimate a pose from the cameras' intrinsics where both have a prior focal length (auto), always, or "
        "never; elsewhere a fundamental matrix (default: %(default)s)",
    )
    how.add_argument(
        "--min-inliers",
        type=int,
        default=defaults.min_inliers,
        metavar="N",
        help="reject pairs with fewer (default: %(default)s)",
    )
    how.add_argument(
        "--min-confidence",
        type=float,
        default=defaults.min_confidence,
        metavar="P",
        help="reject pairs whose geometry is right with a lower probability (default: %(default)s)",
    )
    how.add_argument(
        "--ratio-from-descriptors",
        action="store_true",
        help="use second-nearest-neighbour ratios, computed again from the database's SIFT descriptors, as scores: "
        "slower, and better where inliers are few",
    )


def _add_run(parser: argparse.ArgumentParser) -> None:
    run = parser.add_argument_group("the run")
    run.add_argument("--overwrite", action="store_true", help="verify pairs again that have a geometry already")
    run.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="write one line per pair, .csv or .parquet (needs the extra 'reports'): image1, image2, matches, inliers, "
        "ratio, confidence, config, ms",
    )
    run.add_argument(
        "--workers",
        type=int,
        default=count_cores(),
        metavar="N",
        help="processes; any number gives the same result (default: all cores, %(default)s)",
    )
    run.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="run on a Dask cluster instead, tcp://host:8786 (needs the extra 'cluster')",
    )


def _add_hloc(parser: argparse.ArgumentParser) -> None:
    hloc = parser.add_argument_group("hloc, in place of a database (needs the extra 'hloc')")
    hloc.add_argument("--features", type=Path, metavar="H5", help="keypoints")
    hloc.add_argument("--matches", type=Path, metavar="H5", help="matches; their scores are used as confidences")
    hloc.add_argument("--pairs", type=Path, metavar="TXT", help="two image names per line")
    hloc.add_argument(
        "--out", type=Path, metavar="H5", help="inlier matches, in hloc's layout (default: MATCHES-verified.h5)"
    )
    hloc.add_argument(
        "--cameras",
        type=Path,
        metavar="TXT",
        help="intrinsics, 'name MODEL width height params...' per line; other images get a fundamental matrix",
    )


def run_verify(arguments: argparse.Namespace) -> int:
    """Verify, with a progress bar and a summary."""
    options = VerificationOptions(
        estimation=estimation.read_options(arguments),
        min_inliers=arguments.min_inliers,
        min_confidence=arguments.min_confidence,
    )
    if arguments.report is not None:
        check_pair_reports_path(arguments.report)
    source, place = open_source(arguments)
    reports, started = list(source.kept), time.perf_counter()
    workers = min(arguments.workers, max(len(source.pending) // source.batch_size, 1))
    try:
        with open_executor(workers, arguments.scheduler) as (executor, in_flight), Progress() as progress:

            def on_batch(found: Sequence[PairGeometry]) -> None:
                reports.extend(map(PairReport.of_geometry, found))
                progress.show("verify", len(reports) - len(source.kept), len(source.pending), unit="pairs")

            on_batch([])  # from here on the time counts
            verify(source, executor, options, in_flight=in_flight, on_batch=on_batch)
    except KeyboardInterrupt:
        done = len(reports) - len(source.kept)
        print(f"caransac: {done} of {len(source.pending)} pairs done; the same command continues", file=sys.stderr)
        raise
    finally:
        source.close()
        if arguments.report is not None:
            write_pair_reports(arguments.report, reports)
    print(summarise(reports, len(source.kept), time.perf_counter() - started))
    print(f"Geometries: {place}")
    if arguments.report is not None:
        print(f"Report: {arguments.report}")
    return 0


def open_source(arguments: argparse.Namespace) -> tuple[Source, Path]:
    """The database or hloc's files, and where the geometries go."""
    hloc = (arguments.features, arguments.matches, arguments.pairs)
    if arguments.database is not None:
        if any((*hloc, arguments.out, arguments.cameras)):
            raise ValueError("give DATABASE.db, or --features, --matches and --pairs, not both")
        database = ColmapDatabase(
            arguments.database,
            calibrated=arguments.calibrated,
            overwrite=arguments.overwrite,
            ratio_from_descriptors=arguments.ratio_from_descriptors,
        )
        return database, arguments.database
    if not all(hloc):
        raise ValueError("give DATABASE.db, or all of --features, --matches and --pairs")
    if arguments.ratio_from_descriptors:
        raise ValueError("--ratio-from-descriptors reads a COLMAP database; hloc's matches have scores of their own")
    out = arguments.out or arguments.matches.with_name(f"{arguments.matches.stem}-verified.h5")
    files = HlocFiles(
        *hloc,
        out,
        cameras=arguments.cameras,
        calibrated=arguments.calibrated,
        overwrite=arguments.overwrite,
    )
    return files, out


def summarise(reports: Sequence[PairReport], num_kept: int, elapsed_s: float) -> str:
    """One line about a run."""
    verified = len(reports) - num_kept
    kinds = ", ".join(
        f"{count} {kind.replace('_', ' ')}" for kind, count in Counter(r.config for r in reports).most_common()
    )
    kept = f" and kept {num_kept} from before" if num_kept else ""
    speed = f" in {elapsed_s:.1f} s ({verified / elapsed_s:.1f} pairs per second)" if verified else ""
    return f"Verified {verified} pairs{speed}{kept}: {kinds}"
