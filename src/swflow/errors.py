"""The one exception that a user is meant to read: a single line, without a traceback."""


class SwflowError(Exception):
    """What is wrong and what to do about it, in one line that names the file, line or config key."""
