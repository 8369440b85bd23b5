"""Profiles a small PyTorch model; `smdbg` judges the trace.

    smdbg capture --output traced/profiler-output -- python profile_pytorch.py --slow-loader
    smdbg run traced

Only PyTorch is needed to run it. `--slow-loader` plants a fault that the verdict should show.
"""

from __future__ import annotations

import argparse
import os
import time

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler
from torch.utils.data import DataLoader, Dataset


class Points(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Random points; each takes `seconds` to load."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __len__(self) -> int:
        return 4096

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        time.sleep(self.seconds)
        return torch.randn(64), torch.tensor(index % 10)


def main() -> None:
    """Train under the profiler for some steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--slow-loader", action="store_true", help="Loading a point takes 10 ms.")
    parser.add_argument("--output", default=os.environ.get("SMDBG_PROFILER_OUTPUT", "profiler-output"))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    wide = 2048
    model = nn.Sequential(
        nn.Linear(64, wide), nn.ReLU(), nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Points(0.01 if asked.slow_loader else 0.0), batch_size=32, num_workers=2)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=asked.steps, repeat=1),
        on_trace_ready=tensorboard_trace_handler(asked.output, use_gzip=True),
    ) as profiler:
        for number, (inputs, targets) in enumerate(loader):
            if number == asked.steps + 3:
                break
            loss = nn.functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            profiler.step()


if __name__ == "__main__":
    main()
