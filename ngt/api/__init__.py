"""What `import ngt` offers; `ngt/__init__.py` loads these modules when a name is first used."""
