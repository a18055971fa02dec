"""The Python API. `ngt/__init__.py` imports each module of this package when it is first used."""
