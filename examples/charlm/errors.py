"""The one error type whose message is meant for the user, without a traceback."""

import sys
from typing import Callable


class CharlmError(Exception):
    """What is wrong, where, and what to do about it."""


def run(main: Callable[[], int]) -> None:
    """Ends the process with what main returns, or with its error in one line."""
    try:
        sys.exit(main())
    except CharlmError as error:
        sys.exit(f"charlm: {error}")
