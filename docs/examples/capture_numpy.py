"""Trains a small network with NumPy while `smdbg capture` watches the machine.

    smdbg capture --output planted/profiler-output -- python capture_numpy.py --slow-loader --slow-steps --hog
    smdbg run planted

Each option plants a fault that the verdicts should show.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from smdbg_core import TimelineWriter

Batch = tuple[NDArray[np.float64], NDArray[np.float64]]


def load(rng: np.random.Generator, seconds: float) -> Iterator[Batch]:
    """Batches of a noisy linear problem; each takes `seconds` to load."""
    truth = rng.normal(size=(64, 1))
    while True:
        time.sleep(seconds)
        inputs = rng.normal(size=(256, 64))
        yield inputs, inputs @ truth + 0.1 * rng.normal(size=(256, 1))


def spin() -> None:
    """Keeps a core busy."""
    while True:
        pass


def train(timeline: TimelineWriter, steps: int, slow_loader: bool, slow_steps: bool) -> float:
    """Train a network of two layers; the last loss."""
    rng = np.random.default_rng(0)
    hidden, output = 0.1 * rng.normal(size=(64, 128)), 0.1 * rng.normal(size=(128, 1))
    batches = load(rng, 0.1 if slow_loader else 0.0)
    timeline.settings(num_workers=0, pin_memory=False)
    loss = float("nan")
    for number in range(steps):
        with timeline.loading():
            inputs, targets = next(batches)
        with timeline.step(number, mode="TRAIN"):
            with timeline.phase("Forward"):
                active = np.maximum(inputs @ hidden, 0)
                error = active @ output - targets
                loss = float(np.mean(error**2))
            with timeline.phase("Backward(post-forward)"):
                to_hidden = inputs.T @ ((error @ output.T) * (active > 0))
                output -= 1e-3 * active.T @ error / len(inputs)
                hidden -= 1e-3 * to_hidden / len(inputs)
            if slow_steps and number % 18 == 17:
                time.sleep(0.25)
    return loss


def main() -> None:
    """Train, with the faults that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=220)
    parser.add_argument("--slow-loader", action="store_true", help="Loading a batch takes 100 ms.")
    parser.add_argument("--slow-steps", action="store_true", help="Every 18th step takes 250 ms longer.")
    parser.add_argument("--hog", action="store_true", help="Another process keeps a core busy.")
    asked = parser.parse_args()
    hog = multiprocessing.Process(target=spin, daemon=True)
    if asked.hog:
        hog.start()
    with TimelineWriter(os.environ["SMDBG_PROFILER_OUTPUT"], rank=0) as timeline:
        loss = train(timeline, asked.steps, asked.slow_loader, asked.slow_steps)
    if asked.hog:
        hog.terminate()
    print(f"loss {loss:.3f}")


if __name__ == "__main__":
    main()
