"""Reading, writing and recognising demonstrations in other projects' formats.

Each reader returns a `Found`: the episodes as the file holds them, and notes for the user.
"""
