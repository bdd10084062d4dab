"""caransac view: an estimate in the browser."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path

from caransac.cli import inputs, two_views
from caransac.cli.pose import as_text
from caransac.cli.quiet import note, say, show
from caransac.options import Options
from caransac.viewer.report import MAX_IMAGE_PX

DESCRIPTION = """\
Estimate like 'caransac pose', write one HTML file and open it in the browser.
It shows the images with their matches, the inlier probabilities after every
round, epipolar lines and cameras. The file needs no network. Images need the
extra 'images'."""
EXAMPLES = """\
examples:
  caransac view a.jpg b.jpg                       opens caransac.html
  caransac view a.png b.png --focal 1200 --html ab.html --no-open
  caransac view a.jpg b.jpg --matches lightglue.npz
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    about = "look at the matches of two images, round by round, in the browser"
    parser = inputs.add_command(commands, "view", about=about, text=DESCRIPTION, examples=EXAMPLES)
    two_views.add_options(parser, Options())
    output = parser.add_argument_group("output")
    output.add_argument(
        "--html", type=Path, default=Path("caransac.html"), metavar="FILE", help="HTML file (default: %(default)s)"
    )
    output.add_argument("--out", type=Path, help=argparse.SUPPRESS)  # the old name of --html; removed in 0.5
    output.add_argument(
        "--max-image-px",
        type=int,
        default=MAX_IMAGE_PX,
        metavar="PX",
        help="reduce larger images in the file to this many pixels on the longer side; 0 for the original size, which "
        "makes a file of many megabytes (default: %(default)s)",
    )
    output.add_argument("--no-open", action="store_true", help="write the file, but do not open it")
    parser.set_defaults(run=view)


def view(arguments: argparse.Namespace) -> int:
    """Estimate the geometry, write the report, open it and return the exit code."""
    if arguments.out is not None:
        note(arguments, "caransac: --out is now --html; 0.5 will not accept --out")
    html = arguments.out or arguments.html
    inputs.check_outputs(arguments, html=html)
    if arguments.max_image_px < 0:
        raise ValueError(f"--max-image-px must be 0, for the original size, or positive, not {arguments.max_image_px}")
    options = two_views.read_options(arguments, keep_trace=True)
    views = inputs.read_views(arguments)
    found = two_views.estimate(views, options)
    result = two_views.rely_on(found)
    if result.success and not arguments.quiet:
        print(as_text(views, result))
    path = two_views.write_html(html, views, found, arguments.max_image_px or None).resolve()
    if not arguments.quiet:
        show(f"Report: {path}")
    if not result.success:
        say(f"caransac: {two_views.explain_failure(views, result)}")
    if not arguments.no_open and not webbrowser.open(path.as_uri()):
        say(f"caransac: found no browser: open {path} yourself")
    return 0 if result.success else 1
