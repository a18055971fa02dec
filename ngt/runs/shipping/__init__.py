"""Functions that write the results that the suite ships: published records and experts."""
