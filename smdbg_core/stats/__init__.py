"""The statistics kernel that all rules share."""

from __future__ import annotations

from smdbg_core.stats.counts import value_counts
from smdbg_core.stats.distributions import fit_normal, jensen_shannon_distance, jensen_shannon_distances
from smdbg_core.stats.empirical import EmpiricalDistribution
from smdbg_core.stats.fused import BLOCK, FUSED, FusedPass, fused, fused_segments
from smdbg_core.stats.histogram import Histogram, histogram
from smdbg_core.stats.pairs import Closeness, DifferenceNorms, closeness, difference_norms
from smdbg_core.stats.quantiles import quantiles
from smdbg_core.stats.registry import Statistic, lookup, statistic
from smdbg_core.stats.series import (
    exponential_average,
    moving_average,
    outliers,
    relative_change,
    robust_spread,
)
from smdbg_core.stats.units import Activity, ChannelSums, active_counts, channel_sums

__all__ = [
    "BLOCK",
    "FUSED",
    "Activity",
    "ChannelSums",
    "Closeness",
    "DifferenceNorms",
    "EmpiricalDistribution",
    "FusedPass",
    "Histogram",
    "Statistic",
    "active_counts",
    "channel_sums",
    "closeness",
    "difference_norms",
    "exponential_average",
    "fit_normal",
    "fused",
    "fused_segments",
    "histogram",
    "jensen_shannon_distance",
    "jensen_shannon_distances",
    "lookup",
    "moving_average",
    "outliers",
    "quantiles",
    "relative_change",
    "robust_spread",
    "statistic",
    "value_counts",
]
