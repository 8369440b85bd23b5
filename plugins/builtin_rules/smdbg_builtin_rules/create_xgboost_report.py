"""CreateXgboostReport."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar

from smdbg_builtin_rules.xgboost_report import build_report
from smdbg_core import XGBOOST, Artifact, Collection, Finding, Meta, Reads, RuleRun, StepView, TensorRule

_FOLDER = "rule-output/CreateXgboostReport/xgboost-reports"
_READ = ("metrics", "feature_importance", "predictions", "labels", "hyperparameters")


class CreateXgboostReport(TensorRule):
    """Writes the data of a training report for an XGBoost run; it never fires.

    Why it matters: losses, importances, confusion and residuals in one place say what the model learnt.
    What to do: give an output folder; `report.html` shows all of it, and the files below
    `rule-output/CreateXgboostReport` hold the data.
    """

    frameworks: ClassVar = XGBOOST
    group: ClassVar = "xgboost"
    severity: ClassVar = "info"
    collections_to_save: ClassVar = (
        Collection("metrics", save_interval=5),
        Collection("feature_importance", save_interval=5),
        Collection("hyperparameters", save_steps=(0,)),
        Collection("predictions", save_interval=5),
        Collection("labels", save_interval=5),
    )

    plot_step: Annotated[
        int | None,
        Meta(
            ge=0, description="Step of the sections that are of one step; the last one without.", local=True
        ),
    ] = None
    labels_all_steps: Annotated[
        bool, Meta(description="Count labels at all saved steps, as the service does.", local=True)
    ] = False

    def reads(self) -> Reads:
        """What the report is made of; nothing is measured of it."""
        return Reads(collections=_READ, strings=True)

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Judge nothing: the report is made at the end."""
        return iter(())

    def finish(self, run: RuleRun) -> Iterable[Artifact]:
        """Write one file for each section, and one with all of them."""
        report = build_report(run.trial, self.plot_step, labels_all_steps=self.labels_all_steps)
        sections = dict(report.sections())
        if not sections:
            return
        summary = {
            "objective": report.objective,
            "kind": report.kind,
            "plot_step": report.plot_step,
            "notices": report.notices,
            "sections": sorted(sections),
        }
        for name, data in (("Summary", summary), *sections.items()):
            yield Artifact(
                path=f"{_FOLDER}/{name}.json",
                content=json.dumps(data, indent=1, allow_nan=False).encode(),
                media_type="application/json",
            )
