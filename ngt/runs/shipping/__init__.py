"""Functions that write results for the repository: published records, and experts in data/."""
