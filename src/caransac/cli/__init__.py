"""The command line: one module per command."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import caransac
from caransac._support.interrupts import INTERRUPTED, InterruptGuard

COMMANDS = ("pose", "view", "verify", "localize", "demo", "completion")
MOVED = ("train", "bench")  # commands of 0.2 that are in the lab; the line that says so goes in 0.4
DESCRIPTION = "Robust two-view geometry and camera poses from matches with many outliers."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line ``caransac``; see `run_program`."""
    given = sys.argv[1:] if arguments is None else arguments
    if given and given[0] in MOVED:
        where = "which a clone of the repository installs: pip install ./lab"
        print(f"caransac: 'caransac {given[0]}' is now 'caransac-lab {given[0]}', {where}", file=sys.stderr)
        return 2
    return run_program("caransac", DESCRIPTION, COMMANDS, arguments)


def run_program(program: str, description: str, commands: Sequence[str], arguments: Sequence[str] | None) -> int:
    """Run a command line with commands; returns the exit code.

    Args:
        program: its name. Command ``do-this`` of ``my-program`` is the module ``my_program.cli.do_this``.
        description: what ``--help`` says about it.
        commands: their names.
        arguments: those of the command line. None for those of the process, which then belongs to the command: Ctrl-C
            ends it well, see `InterruptGuard`.
    """
    with InterruptGuard(f"{program}: interrupted", active=arguments is None) as guard:
        try:
            code = _run(program, description, commands, arguments, guard)
            if sys.stdout is not None:  # it may be closed
                sys.stdout.flush()  # here, where a reader that has gone is noticed
            return code
        except BrokenPipeError:  # 'caransac ... | head' has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what Python still flushes at its end
            return 141  # as a program that SIGPIPE ends
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
    """The end of a message about words that are not known: which ones were meant, if that can be told."""
    from difflib import get_close_matches

    meant = [near[0] for word in misspelt if (near := get_close_matches(word, known, 1, 0.7))]
    return f"; did you mean {' and '.join(meant)}?" if meant else ""


def _join_negative(arguments: Sequence[str]) -> list[str]:
    """Arguments in which ``--distortion -0.05±0.02`` is one word: argparse takes the number for an option."""
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
    """Read the arguments, and run the command that they name."""
    import argparse  # here, as everything else that takes a while: the guard answers to Ctrl-C from before

    given = sys.argv[1:] if arguments is None else list(arguments)
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("--version", action="version", version=f"{program} {caransac.__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    # Imported here, and only the one that is asked for: together they take longer than to verify a few pairs.
    only_one = bool(given) and given[0] in commands and given[0] != "completion"  # which knows all others
    for command in given[:1] if only_one else commands:
        import_module(f"{program}.cli.{command}".replace("-", "_")).add_parser(subparsers)
    for each in subparsers.choices.values():
        each.allow_abbrev = False  # a script with --foca would break when another option begins so
    if given and not given[0].startswith("-") and given[0] not in commands:
        parser.error(f"there is no command {given[0]!r}{_suggest(given[:1], commands)} (see {program} --help)")
    parsed, unknown = parser.parse_known_args(_join_negative(given))
    if unknown:  # argparse itself would print the usage of the whole program
        chosen = subparsers.choices[parsed.command]
        options = [option for action in chosen._actions for option in action.option_strings]
        misspelt = [word.partition("=")[0] for word in unknown if word.startswith("-")]
        chosen.error(f"unrecognized arguments: {' '.join(unknown)}{_suggest(misspelt, options)}")
    if "how_to_continue" in parsed:  # of the commands that take long
        guard.begin(parsed.how_to_continue)
    else:
        guard.release()
    return int(parsed.run(parsed))
