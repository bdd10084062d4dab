"""Functions that tests call in worker processes, which must be able to import them."""

import os
import time

from caransac.verification import PairMatches


class StubbornError(Exception):
    """An error that pickle cannot restore."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def fail(kind, *arguments):
    raise kind(*arguments)


def remember(value):
    os.environ["REMEMBERED"] = value


def nap_and_tell(seconds):
    time.sleep(seconds)
    return os.getpid()


def leave_or_answer(code):
    if code:
        os._exit(code)
    return "answer"


class Deadly(PairMatches):
    """A pair that kills the process that unpickles it, up to the number of times in `lives_file`."""

    lives_file = None

    @classmethod
    def of(cls, pair, lives_file):
        deadly = cls(**vars(pair))
        object.__setattr__(deadly, "lives_file", lives_file)
        return deadly

    def __reduce__(self):
        values = {name: value for name, value in vars(self).items() if name != "lives_file"}
        return _take_a_life, (self.lives_file, values)


def _take_a_life(lives_file, values):
    lives = int(lives_file.read_text())
    if lives:
        left = lives_file.with_name(f"lives-{os.getpid()}")  # replaced atomically, because another worker may read it
        left.write_text(str(lives - 1))
        left.replace(lives_file)
        os._exit(1)
    return PairMatches(**values)
