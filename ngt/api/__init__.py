"""The Python API. `ngt/__init__.py` loads each of these modules when one of its names is used."""
