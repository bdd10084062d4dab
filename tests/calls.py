"""What tests let worker processes call: here, as they must be able to import it."""

import os
import time

from caransac.verification import PairMatches


class StubbornError(Exception):
    """Cannot be made again from what `pickle` keeps of it."""

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
    """A pair that ends the process that unpickles it, as often as the file `lives_file` says."""

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
        left = lives_file.with_name(f"lives-{os.getpid()}")  # replaced whole: another worker may be reading
        left.write_text(str(lives - 1))
        left.replace(lives_file)
        os._exit(1)
    return PairMatches(**values)
