"""Distances between distributions, and fits; SciPy computes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["fit_normal", "jensen_shannon_distance", "jensen_shannon_distances"]


def jensen_shannon_distance(p: Sequence[float], q: Sequence[float], base: float = 2) -> float:
    """Jensen-Shannon distance of two histograms over the same bins.

    Args:
        p: Counts or frequencies; they are normalised.
        q: The same.
        base: Of the logarithm. The distance lies in [0, 1] for base 2 and in [0, 0.8326] for base e.
    """
    from scipy.spatial.distance import jensenshannon

    return float(jensenshannon(p, q, base=base))


def jensen_shannon_distances(histograms: NDArray[Any]) -> NDArray[np.float64]:
    """Jensen-Shannon distances (base e, in [0, 0.8326]) between all rows.

    Args:
        histograms: Counts, shape (n, bins); no row is all zero.

    Returns:
        Shape (n, n), symmetric, with a zero diagonal.
    """
    from scipy.special import rel_entr

    shares = histograms / histograms.sum(axis=1, keepdims=True)
    one, other = shares[:, None, :], shares[None, :, :]
    middle = (one + other) / 2
    divergence = (rel_entr(one, middle) + rel_entr(other, middle)).sum(axis=2) / 2
    return np.sqrt(np.maximum(np.asarray(divergence, np.float64), 0.0))


def fit_normal(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation of the normal distribution that fits best."""
    from scipy.stats import norm

    mean, std = norm.fit(values)
    return float(mean), float(std)
