"""One line of progress: step, steps/s, last return, time left."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from tqdm import tqdm


class Progress:
    """A tqdm bar on a terminal; elsewhere a plain line now and then."""

    EVERY = 15.0  # seconds between plain lines

    def __init__(self, total: int, name: str, stream: TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.total, self.name = total, name
        self.step, self.note = 0, "return -"
        self.start = self.last = time.monotonic()
        self.bar = (
            tqdm(total=total, desc=name, unit="step", file=self.stream, dynamic_ncols=True)
            if self.stream.isatty()
            else None
        )

    def update(self, step: int, note: str | None = None) -> None:
        """The run stands at `step`; `note` replaces the last return."""
        if self.bar is not None:
            self.bar.update(step - self.step)
            if note is not None:
                self.bar.set_postfix_str(note)
        self.step, self.note = step, note or self.note
        now = time.monotonic()
        if self.bar is None and (now - self.last >= self.EVERY or step >= self.total):
            self.last = now
            self._line(now)

    def _line(self, now: float) -> None:
        rate = self.step / max(now - self.start, 1e-9)
        left = tqdm.format_interval(int((self.total - self.step) / max(rate, 1e-9)))
        print(
            f"{self.name}: step {self.step}/{self.total}, {rate:.0f} steps/s, {self.note}, "
            f"{left} left",
            file=self.stream, flush=True,
        )  # fmt: skip

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
