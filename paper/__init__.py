"""The paper's figures and tables: one module an artefact, named as its output."""

import os
from pathlib import Path

# Figures go to files, in a look of their own: neither a notebook's backend, which may not even be
# installed here and would stop the import of matplotlib, nor a settings file of the user's counts.
os.environ["MPLBACKEND"] = "agg"
os.environ.pop("SOURCE_DATE_EPOCH", None)  # no file has a date
os.environ["MATPLOTLIBRC"] = str(Path(__file__).with_name("style.mplstyle"))
