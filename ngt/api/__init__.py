"""The Python API. `ngt/__init__.py` imports each of its modules when one of their names is used."""
