"""Writes the pages of `docs/rules`: from each rule's declaration, and the prose beside it.

python docs/rule_pages.py          write the pages
python docs/rule_pages.py --check  say which are out of date, and exit with 1
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from smdbg_core import ProfilerRule, Registry, Rule
from smdbg_core.parameters import Parameter

FOLDER = Path(__file__).parent / "rules"
OWNERS = ("smdbg-builtin-rules", "smdbg-profiler-rules")


def stem_of(name: str) -> str:
    """Name of a rule's module and page."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def page(name: str, rule: type[Rule], prose: str) -> str:
    """The page of a rule."""
    said = rule.documentation()
    saved = ", ".join(map(collection, rule.collections_to_save))
    needs = "profiler output" if issubclass(rule, ProfilerRule) else f"collections {saved or 'as configured'}"
    lines = [
        f"# {name}",
        "",
        said.summary,
        "",
        f"**Why it matters:** {said.matters}",
        "",
        f"**What to do:** {said.remedy}",
        "",
        "| | |",
        "| --- | --- |",
        f"| group | {rule.group} |",
        f"| frameworks | {', '.join(rule.frameworks)} |",
        f"| severity | {rule.severity} |",
        f"| needs | {needs} |",
        "",
        "## Parameters",
        "",
        "| parameter | default | takes | meaning |",
        "| --- | --- | --- | --- |",
        *(row(parameter) for parameter in rule.__parameters__.values()),
        "",
        "† not known to SageMaker; it stays out of requests.",
    ]
    return "\n".join(lines) + "\n\n" + prose


def collection(saved: Any) -> str:
    """A collection that the rule wants saved, in a few words."""
    details = [f"`{saved.include_regex}`"] if saved.include_regex else []
    details += [f"every {saved.save_interval} steps"] if saved.save_interval else []
    details += [f"at step {', '.join(map(str, saved.save_steps))}"] if saved.save_steps else []
    return f"`{saved.name}` ({', '.join(details)})"


def row(parameter: Parameter) -> str:
    """A row of the table of parameters."""
    meta = parameter.meta
    default = (
        ", ".join(map(str, parameter.default)) if isinstance(parameter.default, tuple) else parameter.default
    )
    mark = " †" if meta.local else ""
    unit = f" ({meta.unit})" if meta.unit else ""
    also = f" The default also matches {', '.join(f'`{one}`' for one in meta.also)}." if meta.also else ""
    spelt = f" Also spelt {', '.join(f'`{one}`' for one in meta.aliases)}." if meta.aliases else ""
    shown = "required" if parameter.required else "none" if default in (None, "") else f"`{default}`"
    cells = [
        f"`{parameter.name}`{mark}",
        shown,
        f"{parameter.expected}{unit}",
        f"{meta.description}{also}{spelt}",
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def pages() -> Iterator[tuple[Path, str]]:
    """Every page and its content, the index last."""
    registry = Registry()
    index = ["# Rules", "", "Generated from the declarations; `smdbg explain NAME` prints the same.", ""]
    groups: dict[str, list[str]] = {}
    for spec in (*registry.rules(), *registry.profiler_rules()):
        if spec.distribution in OWNERS:
            rule = registry.load(spec).object
            stem = stem_of(spec.name)
            prose = (FOLDER / "prose" / f"{stem}.md").read_text(encoding="utf-8")
            yield FOLDER / f"{stem}.md", page(spec.name, rule, prose)
            summary = rule.documentation().summary
            groups.setdefault(rule.group, []).append(f"- [{spec.name}]({stem}.md): {summary}")
    for group, entries in sorted(groups.items()):
        index += [f"## {group.capitalize()}", "", *sorted(entries), ""]
    yield FOLDER / "README.md", "\n".join(index)


def main(check: bool) -> int:
    """Write the pages, or compare them."""
    stale = [path for path, text in pages() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if check:
        sys.stdout.writelines(f"out of date: {path}\n" for path in stale)
        return 1 if stale else 0
    for path, text in pages():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
