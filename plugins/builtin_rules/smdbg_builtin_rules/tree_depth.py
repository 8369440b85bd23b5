"""TreeDepth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from smdbg_core import XGBOOST, Finding, Meta, Reads, RuleRun, StepView, TensorRule

_STRUCTURE = ("trees/ID", "trees/Yes", "trees/No")


class TreeDepth(TensorRule):
    """Fires when a tree of an XGBoost model is deeper than allowed.

    Why it matters: deep trees fit single samples, and cost memory and time.
    What to do: lower `max_depth`, raise `min_child_weight` or `gamma`.
    """

    frameworks: ClassVar = XGBOOST
    group: ClassVar = "xgboost"
    presets: ClassVar = {"recommended": {"depth": 6.0, "exact_depth": True}}

    depth: Annotated[float, Meta(ge=0, unit="levels", description="A deeper tree fires.")] = 4.0
    exact_depth: Annotated[
        bool,
        Meta(description="Follow the links of nodes instead of the largest node id.", local=True),
    ] = False

    def reads(self) -> tuple[Reads, ...]:
        """Node ids of the tree; ids and links of its nodes for the exact depth."""
        nodes = Reads(group="nodes", patterns=(r"^trees/Node$",), statistics=("size", "max"), source="raw")
        if not self.exact_depth:
            return (nodes,)
        links = Reads(
            group="links",
            patterns=(r"^trees/(ID|Yes|No)$",),
            values=True,
            source="raw",
            strings=True,
            optional=True,
        )
        return nodes, links

    def start(self, run: RuleRun) -> None:
        """Warn where one tree a round is not the whole model."""
        if "hyperparameters/num_class" in run.trial.tensor_names():
            run.warn(
                "a model of several classes grows several trees a round, of which one is saved and judged"
            )

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Judge the tree of the step."""
        for tensor in step.tensors("nodes"):
            if not tensor.statistics.size:
                self.skip(tensor, "empty tensor")
                continue
            largest = int(tensor.statistics.max)
            # Nodes are numbered level by level: the root is 0, its children 1 and 2, and so on.
            depth = max(0, (largest + 1).bit_length() - 1)
            if self.exact_depth:
                columns = {
                    view.name: view.values for view in step.tensors("links") if view.worker == tensor.worker
                }
                if not all(name in columns for name in _STRUCTURE):
                    self.skip(tensor, "the links of the nodes are not saved")
                    continue
                depth = _followed(*([str(text) for text in columns[name]] for name in _STRUCTURE))
            text = f"depth {depth} > {self.depth:g} (largest node id {largest})"
            yield from self.judge(tensor, "depth", depth, ">", self.depth, message=text)


def _followed(ids: list[str], yes: list[str], no: list[str]) -> int:
    """Depth of the tree by its links."""
    children = {node: (left, right) for node, left, right in zip(ids, yes, no, strict=True)}
    inner = {child for pair in children.values() for child in pair}
    level = [node for node in ids if node not in inner]
    depth, seen = 0, set(level)
    while True:
        level = [c for node in level for c in children[node] if c in children and c not in seen]
        if not level:
            return depth
        seen.update(level)
        depth += 1
