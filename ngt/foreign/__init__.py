"""Functions that read, write and recognise demonstrations in other projects' formats.

Each reading function returns a `Found` object, which holds a file's episodes and notes for the
user.
"""
