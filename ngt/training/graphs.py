"""CUDA graphs. A graph captures a step on fixed tensors once and replays it in one launch."""

from collections.abc import Callable

import torch


class Graph:
    """A step that is captured after `warmup` ordinary calls and then replayed.

    Every call takes one step. The step has no arguments and returns nothing. It reads and writes
    tensors at fixed addresses, so a replay uses their current values. The step must not copy a
    tensor's value to the CPU, branch on such a value, or make a tensor from Python numbers. In a
    replay, a Python number has the value that it had when the graph was captured.
    """

    def __init__(self, step: Callable[[], None], warmup: int = 3) -> None:
        self.step, self.warmup = step, warmup
        self.graph: torch.cuda.CUDAGraph | None = None
        self.side = torch.cuda.Stream()

    def __call__(self) -> None:
        if self.graph is None and self.warmup > 0:
            self.warmup -= 1
            self.side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.side):
                self.step()
            torch.cuda.current_stream().wait_stream(self.side)
            return
        if self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):  # records the step without running it
                self.step()
        self.graph.replay()
