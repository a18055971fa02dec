"""Functions that read, write and recognise demonstrations in other projects' formats.

Each reading function returns a `Found`: the episodes in a file, and notes for the user.
"""
