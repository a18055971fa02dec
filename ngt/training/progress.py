"""A display of training progress: step, steps per second, last return and time left."""

import sys
import time
from typing import TextIO


class Progress:
    """A progress display: a tqdm bar on a terminal, otherwise a plain line at intervals."""

    EVERY = 15.0  # seconds between plain lines

    def __init__(self, total: int, name: str, stream: TextIO | None = None, first: int = 0) -> None:
        """Show the progress of `name` towards step `total`; this process starts at step `first`."""
        self.stream = sys.stderr if stream is None else stream
        self.total, self.name = total, name
        self.step = self.first = first
        self.note = "return -"
        self.start = self.last = time.monotonic()
        self.bar = None
        if self.stream.isatty():
            from tqdm import tqdm

            self.bar = tqdm(
                total=total,
                desc=name,
                unit="step",
                file=self.stream,
                dynamic_ncols=True,
                initial=first,
            )

    def update(self, step: int) -> None:
        """Show a step and the text in `note`; without a terminal, only if a plain line is due."""
        if self.bar is not None:
            self.bar.set_postfix_str(self.note, refresh=False)
            self.bar.update(step - self.step)
        self.step = step
        due = time.monotonic() - self.last >= self.EVERY
        if self.bar is None and due and step < self.total:
            self._line()

    def _line(self) -> None:
        self.last = time.monotonic()
        rate = (self.step - self.first) / max(self.last - self.start, 1e-9)
        left = duration((self.total - self.step) / rate) if rate else "?"
        print(
            f"{self.name}: step {self.step}/{self.total}, {rate:.0f} steps/s, {self.note}, "
            f"{left} left",
            file=self.stream,
            flush=True,
        )

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
        else:
            self._line()


def duration(seconds: float) -> str:
    """Return a duration in hours, minutes and seconds, such as 1:02:03."""
    minutes, second = divmod(round(max(seconds, 0.0)), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{second:02d}"
