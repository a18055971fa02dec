"""The writers of what ships: published records and experts."""
