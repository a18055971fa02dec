"""The suite's results: figures, tables, claims, computed theory, and reports that show them.

An artefact is a figure, a table or a document. `python -m paper` lists all artefacts, and
`python -m paper main_figure` makes one of them. `paper.register` defines the artefacts;
docs/new-artefact.md shows how to add another.
"""

import os
from pathlib import Path

# Write figures to files in the suite's own style, whatever the user's settings. The backend of a
# notebook may not be installed here, so that importing matplotlib would fail. A matplotlibrc of the
# user would change the style.
os.environ["MPLBACKEND"] = "agg"
os.environ.pop("SOURCE_DATE_EPOCH", None)  # the files contain no date
os.environ["MATPLOTLIBRC"] = str(Path(__file__).parent / "drawing" / "style.mplstyle")
