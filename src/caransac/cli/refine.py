"""caransac refine: refine the keypoints of a COLMAP database or of hloc's files in the photographs."""

from __future__ import annotations

import argparse
from pathlib import Path

from caransac.cli.refined_keypoints import refine_database, refine_files
from caransac.cli.verify import (
    add_database_command,
    add_estimation,
    add_hloc,
    add_run,
    verify_all,
    verify_refined,
    with_values,
)
from caransac.keypoint_refinement import undo

USAGE = """caransac refine DATABASE.db --images DIR [--out NEW.db | --in-place] [options]
       caransac refine --features H5 --matches H5 --pairs TXT --images DIR [options]
       caransac refine DATABASE.db --undo [options]"""
DESCRIPTION = """Move the keypoints of a whole collection to where their patches agree in all
photographs, remove the matches whose patches do not agree, and verify the pairs
again. It reads verified pairs: run caransac verify first."""
EXAMPLES = """examples:
  COLMAP; then run the mapper on the new database
    caransac verify database.db
    caransac refine database.db --images photos --out refined.db
  the database itself, and back
    caransac refine database.db --images photos --in-place
    caransac refine database.db --undo
  hloc
    caransac refine --features feats.h5 --matches matches-verified.h5 \\
        --pairs pairs.txt --cameras cameras.txt --images photos

Give the options of the verification as for caransac verify. To continue an
interrupted run, give the same command again.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    about = "refine the keypoints of a COLMAP database or of hloc's files in the photographs"
    parser = add_database_command(commands, "refine", about=about, usage=USAGE, text=DESCRIPTION, examples=EXAMPLES)
    keypoints = parser.add_argument_group("keypoints")
    keypoints.add_argument(
        "--images", type=Path, metavar="DIR", help="folder of the photographs; image names are paths in it"
    )
    keypoints.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="new database, or file of matches of hloc (default: DATABASE-refined.db, MATCHES-refined.h5)",
    )
    keypoints.add_argument(
        "--in-place", action="store_true", help="change the database itself; it keeps what --undo needs"
    )
    keypoints.add_argument(
        "--undo", action="store_true", help="put the keypoints and matches back that --in-place changed"
    )
    keypoints.add_argument(
        "--keep-matches", action="store_true", help="do not remove the matches whose patches do not agree"
    )
    add_estimation(parser, max_error_px="auto")  # refined keypoints are precise
    add_run(parser.add_argument_group("the run"))
    hloc = add_hloc(parser)
    hloc.add_argument(
        "--out-features", type=Path, metavar="H5", help="refined keypoints (default: FEATURES-refined.h5)"
    )
    parser.set_defaults(run=run_refine, how_to_continue="the same command continues")


def run_refine(arguments: argparse.Namespace) -> int:
    """Refine the keypoints, verify the pairs again and return the exit code."""
    arguments = with_values(arguments, overwrite=False, write_focals=False, ratio_from_descriptors=False)
    files = (arguments.features, arguments.matches, arguments.pairs)
    if arguments.database is None and not all(files):
        raise ValueError("give DATABASE.db, or all of --features, --matches and --pairs")
    if arguments.database is not None and any((*files, arguments.cameras, arguments.out_features)):
        raise ValueError("give DATABASE.db, or --features, --matches and --pairs, not both")
    if arguments.database is None and (arguments.in_place or arguments.undo):
        raise ValueError("--in-place and --undo change a database; hloc's files are never changed")
    if arguments.undo:
        if arguments.images or arguments.out or arguments.in_place:
            raise ValueError("--undo takes neither --images nor --out nor --in-place")
        undo(arguments.database)
        print(f"The keypoints and matches of {arguments.database} are those before the refinement")
        return verify_all(arguments)
    if arguments.images is None:
        raise ValueError("give the folder of the photographs with --images")
    if arguments.database is None:
        found = refine_files(arguments)
    elif arguments.in_place:
        if arguments.out is not None:
            raise ValueError("give --out or --in-place, not both")
        found = refine_database(arguments, arguments.database, None)
    else:
        path = arguments.database
        out = arguments.out or path.with_name(f"{path.stem}-refined{path.suffix}")
        found = refine_database(arguments, path, out)
    return verify_refined(with_values(arguments, out=None), found)
