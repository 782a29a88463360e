"""Errors that a user can cause and repair: one line that names the field and its value."""


class InputError(ValueError):
    """Bad input. Scripts print it and exit with code 2."""


class RunError(RuntimeError):
    """A run that cannot continue, with the remedy. Scripts print it and exit with code 1."""
