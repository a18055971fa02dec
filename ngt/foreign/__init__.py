"""Reading, writing and recognising demonstrations in other projects' formats.

Each reader returns a `Found`, which has the file's episodes and notes for the user.
"""
