"""Run `python -m paper`."""

from __future__ import annotations

from paper.command import main

if __name__ == "__main__":
    main()
