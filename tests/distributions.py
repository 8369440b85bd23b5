"""Installed distributions made by hand, for tests of discovery."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = ["RULE", "install"]

RULE = '''
from smdbg_core import Reads, TensorRule

class {name}(TensorRule):
    """Counts nothing."""
    group = "custom"
    def reads(self):
        return Reads(everything=True, statistics=("mean",))
    def evaluate(self, step):
        for tensor in step.tensors():
            yield from self.judge(tensor, "mean", tensor.statistics.mean, ">", 1e30)
'''
"""Source of a module with a working rule."""


def install(
    site: Path,
    distribution: str,
    points: Mapping[str, str],
    *,
    version: str = "1.0",
    group: str = "smdbg.rules",
    requires: Iterable[str] = (),
    modules: Mapping[str, str] | None = None,
) -> None:
    """Put a distribution into a folder as pip would: metadata, entry points and modules."""
    info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {distribution}", f"Version: {version}"]
    lines += [f"Requires-Dist: {text}" for text in requires]
    (info / "METADATA").write_text("\n".join(lines) + "\n\nName: a trap in the description\n")
    entries = "\n".join(f"{name} = {value}" for name, value in points.items())
    (info / "entry_points.txt").write_text(f"[console_scripts]\nx = y:z\n\n[{group}]\n{entries}\n")
    for name, source in (modules or {}).items():
        (site / f"{name}.py").write_text(source)
