"""Run `python -m paper`."""

from paper.command import main

if __name__ == "__main__":
    main()
