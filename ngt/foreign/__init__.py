"""Demonstrations in other projects' formats: read, written and recognised.

Each reader returns a `Found`: the episodes as they stand in the file, and notes for the user.
"""
