"""Distances between distributions, and fits; SciPy computes them."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["fit_normal", "jensen_shannon_distance"]


def jensen_shannon_distance(p: Sequence[float], q: Sequence[float]) -> float:
    """Jensen-Shannon distance (base 2, in [0, 1]) of two histograms over the same bins."""
    from scipy.spatial.distance import jensenshannon

    return float(jensenshannon(p, q, base=2))


def fit_normal(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation of the normal distribution that fits best."""
    from scipy.stats import norm

    mean, std = norm.fit(values)
    return float(mean), float(std)
