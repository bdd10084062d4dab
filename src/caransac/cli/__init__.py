"""The command line, with one module for each command."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import caransac
from caransac._support.interrupts import INTERRUPTED, InterruptGuard

COMMANDS = ("pose", "view", "verify", "refine", "localize", "demo", "completion")
MOVED = ("train", "bench")  # commands of 0.2 that are in the lab now; the message about them is removed in 0.4
DESCRIPTION = "Robust two-view geometry and camera poses from matches with many outliers."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line ``caransac`` and return the exit code; see `run_program`."""
    given = sys.argv[1:] if arguments is None else arguments
    if given and given[0] in MOVED:
        where = "which a clone of the repository installs: pip install ./lab"
        print(f"caransac: 'caransac {given[0]}' is now 'caransac-lab {given[0]}', {where}", file=sys.stderr)
        return 2
    return run_program("caransac", DESCRIPTION, COMMANDS, arguments)


def run_program(program: str, description: str, commands: Sequence[str], arguments: Sequence[str] | None) -> int:
    """Run a command line with commands and return the exit code.

    Args:
        program: name of the program. The command ``do-this`` of ``my-program`` is the module
            ``my_program.cli.do_this``.
        description: description that ``--help`` prints.
        commands: names of the commands.
        arguments: arguments of the command line, or None for the arguments of the process. With None, Ctrl-C ends the
            process cleanly (see `InterruptGuard`).
    """
    with InterruptGuard(f"{program}: interrupted", active=arguments is None) as guard:
        try:
            code = _run(program, description, commands, arguments, guard)
            if sys.stdout is not None:  # None if it is closed
                sys.stdout.flush()  # here, so that a closed pipe raises inside the try
            return code
        except BrokenPipeError:  # the reader of a pipe has ended: 'caransac ... | head'
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes once more at its end
            return 141  # the exit code of a program that SIGPIPE ends
        except (ImportError, OSError, ValueError) as error:
            from caransac.cli.quiet import say

            say(f"{program}: {error}")
            return 2
        except MemoryError as error:
            why = str(error) or "use smaller inputs, or fewer --workers"
            print(f"{program}: not enough memory: {why}", file=sys.stderr)
            return 2
        except KeyboardInterrupt as error:
            guard.say(*map(str, error.args))
            guard.leave()
            return INTERRUPTED


def _suggest(misspelt: Sequence[str], known: Sequence[str]) -> str:
    """Return the end of the message about unknown words: the likely intended ones, if there are any."""
    from difflib import get_close_matches

    meant = [near[0] for word in misspelt if (near := get_close_matches(word, known, 1, 0.7))]
    return f"; did you mean {' and '.join(meant)}?" if meant else ""


def _join_negative(arguments: Sequence[str]) -> list[str]:
    """Join ``--distortion -0.05±0.02`` into one word, because argparse would read the number as an option."""
    joined: list[str] = []
    for word in arguments:
        if joined and joined[-1] == "--distortion":
            joined[-1] = f"--distortion={word}"
        else:
            joined.append(word)
    return joined


def _run(
    program: str, description: str, commands: Sequence[str], arguments: Sequence[str] | None, guard: InterruptGuard
) -> int:
    """Parse the arguments and run their command."""
    import argparse  # slow imports are here, so that the guard already handles Ctrl-C

    from caransac._support.untrusted import escape_controls

    given = sys.argv[1:] if arguments is None else list(arguments)

    class Parser(argparse.ArgumentParser):  # the shell may expand * to any name of a file
        def error(self, message: str) -> NoReturn:
            super().error(escape_controls(message))

    parser = Parser(prog=program, description=description)
    parser.add_argument("--version", action="version", version=f"{program} {caransac.__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    # Only the module of the given command is imported: importing all takes longer than verifying a few pairs.
    only_one = bool(given) and given[0] in commands and given[0] != "completion"  # it needs all the others
    for command in given[:1] if only_one else commands:
        import_module(f"{program}.cli.{command}".replace("-", "_")).add_parser(subparsers)
    for each in subparsers.choices.values():
        each.allow_abbrev = False  # a script with --foca would break if a new option began with it
    if given and not given[0].startswith("-") and given[0] not in commands:
        parser.error(f"there is no command {given[0]!r}{_suggest(given[:1], commands)} (see {program} --help)")
    parsed, unknown = parser.parse_known_args(_join_negative(given))
    if unknown:  # argparse would print the usage of the whole program
        chosen = subparsers.choices[parsed.command]
        options = [option for action in chosen._actions for option in action.option_strings]
        misspelt = [word.partition("=")[0] for word in unknown if word.startswith("-")]
        chosen.error(f"unrecognized arguments: {' '.join(unknown)}{_suggest(misspelt, options)}")
    if "how_to_continue" in parsed:  # only long commands have it
        guard.begin(parsed.how_to_continue)
    else:
        guard.release()
    return int(parsed.run(parsed))
