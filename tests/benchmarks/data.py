"""The trials that benchmarks read, written with the trial writer."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from smdbg_core import TrialWriter

SHAPES = [
    (64, 3, 7, 7), (64,), (64, 64, 3, 3), (64,), (128, 64, 3, 3), (128,), (128, 128, 3, 3), (128,),
    (256, 128, 3, 3), (256,), (256, 256, 3, 3), (256,), (512, 256, 1, 1), (512,), (512, 512), (512,),
    (1024, 300), (1024,), (10, 1024), (10,),
]  # fmt: skip
"""Parameters of a small convolutional network, 1.9 million elements."""


def write_large(folder: Path, steps: int = 100) -> None:
    """20 parameters and their gradients at every step, 15 MB a step; the first layer's gradient vanishes."""
    rng = np.random.default_rng(0)
    bases = []
    for index, shape in enumerate(SHAPES):
        name = f"Net_layer{index // 2}.{'bias' if len(shape) == 1 else 'weight'}"
        base = rng.standard_normal(shape).astype(np.float32)
        bases.append((name, base * np.float32(0.05)))
        bases.append((f"gradient/{name}", base[::-1] * np.float32(1e-3 * 2.0 ** (index // 2 - 9))))
    with TrialWriter(folder) as writer:
        for number in range(steps):
            with writer.step(number, mode="TRAIN") as step:
                for name, base in bases:
                    vanishing = name.startswith("gradient/Net_layer0")
                    step.add(name, base * np.float32(0.9**number if vanishing else 1 + 0.001 * number))
                step.add("CrossEntropyLoss_output_0", np.float32(2.3 * 0.99**number))


def write_many_small(folder: Path, steps: int = 2000, tensors: int = 60) -> None:
    """Many tensors of 64 elements, half of them gradients."""
    rng = np.random.default_rng(0)
    names = [
        f"Net_layer{i // 2}.weight" if i % 2 else f"gradient/Net_layer{i // 2}.weight" for i in range(tensors)
    ]
    with TrialWriter(folder) as writer:
        for number in range(steps):
            values = rng.standard_normal((tensors, 64)).astype(np.float32)
            with writer.step(number, mode="TRAIN") as step:
                for name, value in zip(names, values, strict=True):
                    step.add(name, value)
