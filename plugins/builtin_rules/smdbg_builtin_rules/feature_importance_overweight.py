"""FeatureImportanceOverweight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from smdbg_core import (
    XGBOOST,
    AcrossWorkers,
    Collection,
    Finding,
    Meta,
    Reads,
    Regex,
    RuleRun,
    StepView,
    TensorRule,
)


class FeatureImportanceOverweight(TensorRule):
    """Fires when a few features carry too much of the total importance.

    Why it matters: the model hangs on a few inputs; one of them may leak the label.
    What to do: check where the top features come from; drop leaks, sample columns, regularise.
    """

    frameworks: ClassVar = XGBOOST
    group: ClassVar = "xgboost"
    presets: ClassVar = {
        "recommended": {
            "tensor_regex": (".*feature_importance/total_gain",),
            "nfeatures": 1,
            "at_end": True,
        }
    }
    collections_to_save: ClassVar = (Collection("feature_importance", save_interval=500),)

    threshold: Annotated[
        float, Meta(ge=0, le=1, unit="fraction", description="A larger share of the top features fires.")
    ] = 0.8
    nfeatures: Annotated[
        int, Meta(ge=1, unit="features", description="How many top features are added up.")
    ] = 3
    tensor_regex: Annotated[tuple[Regex, ...], Meta(description="Importances, one number each.")] = (
        ".*feature_importance/weight",
    )

    at_end: Annotated[
        bool,
        Meta(description="Whether to judge once, at the end: first trees know few features.", local=True),
    ] = False

    def reads(self) -> Reads:
        """The importances."""
        return Reads(patterns=self.tensor_regex, statistics=("mean",))

    def start(self, run: RuleRun) -> None:
        """Nothing was seen yet."""
        self._last: dict[str, list[AcrossWorkers]] = {}

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Judge the share of the top features, for each type of importance."""
        by_type: dict[str, list[AcrossWorkers]] = {}
        for name, views in step.by_tensor():
            by_type.setdefault(name.rpartition("/")[0], []).append(AcrossWorkers(views))
        if self.at_end:
            self._last |= by_type
        else:
            yield from self._judge_types(by_type)

    def finish(self, run: RuleRun) -> Iterator[Finding]:
        """Judge the last step with importances, where that is asked for."""
        yield from self._judge_types(self._last)

    def _judge_types(self, by_type: dict[str, list[AcrossWorkers]]) -> Iterator[Finding]:
        for kind, features in by_type.items():
            importances = {feature.name.rpartition("/")[2]: feature.mean for feature in features}
            total = sum(importances.values())
            subject = _Features(kind, features)
            if total == 0:
                self.skip(subject, "all importances are zero")
                continue
            top = sorted(importances, key=lambda name: (-importances[name], name))[: self.nfeatures]
            share = sum(importances[name] for name in top) / total
            text = f"{', '.join(top)} hold {share:.4g} > {self.threshold:g} of the total"
            yield from self.judge(subject, "share_of_top_features", share, ">", self.threshold, message=text)


class _Features:
    """All features of one type of importance."""

    node = None

    def __init__(self, name: str, features: list[AcrossWorkers]) -> None:
        self.name = name
        self.worker = features[0].worker
        self.non_finite = sum(feature.non_finite for feature in features)
        self.location = features[0].location
