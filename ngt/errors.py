"""Errors that a user can cause."""


class UserError(Exception):
    """A mistake of the user's: one line that names the field, the value and the fix (exit code 2)."""
