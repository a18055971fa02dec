"""Commands that show runs and policies."""
