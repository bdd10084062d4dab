"""What tests let worker processes call: here, as they must be able to import it."""

import os
import time


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


class Deadly:
    """Ends the process that unpickles it."""

    def __reduce__(self):
        return os._exit, (1,)
