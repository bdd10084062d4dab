"""caransac completion: a script for shells that completes commands, options and their values."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from typing import NamedTuple

DESCRIPTION = """\
Print a script with which your shell completes commands, options and the values
of options. The shell completes file names in all other places."""
EXAMPLES = """\
examples:
  eval "$(caransac completion bash)"              in ~/.bashrc
  eval "$(caransac completion zsh)"               in ~/.zshrc, after compinit
  caransac completion fish > ~/.config/fish/completions/caransac.fish
"""
BASH = """\
_caransac() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words=
    if ((COMP_CWORD == 1)); then
        words={commands}
    else
        case "${{COMP_WORDS[1]}} $previous $current" in
{cases}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _caransac caransac
"""
ZSH = "autoload -U +X bashcompinit && bashcompinit\n"  # after this, zsh understands scripts for bash


class Words(NamedTuple):
    """Words that may follow the name of a command.

    Attributes:
        options: all spellings of all options.
        values: values of each spelling of an option that has a fixed set of values.
        arguments: values of the positional arguments that have a fixed set of values.
    """

    options: list[str]
    values: dict[str, list[str]]
    arguments: list[str]


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "completion",
        help="print a script that completes commands and options in your shell",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=["bash", "zsh", "fish"], help="your shell")
    # When the command runs, `commands` also contains the commands that were added after this one.
    parser.set_defaults(run=lambda arguments: completion(arguments.shell, commands.choices))


def completion(shell: str, parsers: Mapping[str, argparse.ArgumentParser]) -> int:
    """Print the completion script for commands, given by names and parsers."""
    commands = {name: read_words(parser) for name, parser in parsers.items()}
    if shell == "fish":
        print(fish_script(commands), end="")
    else:
        print((ZSH if shell == "zsh" else "") + bash_script(commands), end="")
    return 0


def read_words(parser: argparse.ArgumentParser) -> Words:
    """Return the words that a parser accepts."""
    words = Words([], {}, [])
    for action in parser._actions:  # argparse has no public list
        if action.help == argparse.SUPPRESS:  # an old name
            continue
        choices = [str(choice) for choice in action.choices or ()]
        words.options.extend(action.option_strings)
        words.values.update(dict.fromkeys(action.option_strings if choices else (), choices))
        words.arguments.extend(() if action.option_strings else choices)
    return words


def bash_script(commands: Mapping[str, Words]) -> str:
    """Return the script for bash. In all other places bash completes file names."""
    cases = []
    for name, words in commands.items():
        for option, values in words.values.items():
            cases.append((f'"{name} {option} "*', values))
        cases.append((f'"{name} "*" -"*', words.options))
        if words.arguments:
            cases.append((f'"{name} "*', words.arguments))
    lines = [f"        {pattern}) words={shlex.quote(' '.join(found))} ;;" for pattern, found in cases]
    return BASH.format(commands=shlex.quote(" ".join(commands)), cases="\n".join(lines))


def fish_script(commands: Mapping[str, Words]) -> str:
    """Return the script for fish. In all other places fish completes file names."""
    lines = [f"complete -c caransac -n __fish_use_subcommand -x -a {shlex.quote(' '.join(commands))}"]
    for name, words in commands.items():
        within = f"complete -c caransac -n '__fish_seen_subcommand_from {name}'"
        if words.arguments:
            lines.append(f"{within} -x -a {shlex.quote(' '.join(words.arguments))}")
        for option in words.options:
            spelt = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            values = f" -x -a {shlex.quote(' '.join(words.values[option]))}" if option in words.values else ""
            lines.append(f"{within} {spelt}{values}")
    return "\n".join(lines) + "\n"
