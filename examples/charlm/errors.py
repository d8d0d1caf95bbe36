"""The one error type whose message is meant for the user, without a traceback."""


class CharlmError(Exception):
    """What is wrong, where, and what to do about it."""
