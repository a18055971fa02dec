"""The Python API. `ngt/__init__.py` imports a module of this package when it is first needed."""
