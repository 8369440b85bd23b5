"""Writes the pages of `docs/actions`: from each action's declaration.

python docs/action_pages.py          write the pages
python docs/action_pages.py --check  say which are out of date, and exit with 1
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from rule_pages import row, stem_of

from smdbg_core import Action, Registry

FOLDER = Path(__file__).parent / "actions"
OWNER = "smdbg-actions"
INTRODUCTION = """# Actions, one by one

Generated from the declarations; `smdbg explain NAME` prints the same. How actions are configured, and
what the journal remembers, is in [actions](../actions.md).
"""
ENGINE = tuple(Action.__parameters__)


def page(name: str, action: type[Action]) -> str:
    """The page of an action."""
    parameters = list(action.__parameters__.values())
    head = ["| parameter | default | takes | meaning |", "| --- | --- | --- | --- |"]
    lines = [f"# {name}", "", *_text(action), "", "## Parameters", "", *head]
    lines += [row(parameter) for parameter in parameters if parameter.name not in ENGINE]
    lines += ["", "When it acts; every action has these:", "", *head]
    lines += [row(parameter) for parameter in parameters if parameter.name in ENGINE]
    lines += ["", "† not known to SageMaker; it stays out of requests.", ""]
    if action.policy is not None:
        lines += ["## Permissions", "", "The least that AWS must allow:", "", "```json"]
        lines += [*json.dumps(action.policy, indent=2).splitlines(), "```", ""]
    return "\n".join(lines)


def _text(action: type[Action]) -> Iterator[str]:
    """The docstring; what is indented in it is code."""
    text = inspect.cleandoc(action.__doc__ or "")
    for part in re.split(r"\n\n((?: {4}.*\n|\n(?= {4}))+)", text):
        code = part.startswith("    ")
        yield f"\n```python\n{textwrap.dedent(part).strip()}\n```\n" if code else part.strip()


def pages() -> Iterator[tuple[Path, str]]:
    """Every page and its content, the index last."""
    registry = Registry()
    index = [INTRODUCTION]
    for spec in registry.actions():
        if spec.distribution == OWNER:
            action = registry.load(spec).object
            stem = stem_of(spec.name)
            yield FOLDER / f"{stem}.md", page(spec.name, action)
            summary = inspect.cleandoc(action.__doc__ or "").splitlines()[0]
            index.append(f"- [{spec.name}]({stem}.md): {summary}")
    yield FOLDER / "README.md", "\n".join(index) + "\n"


def main(check: bool) -> int:
    """Write the pages, or compare them."""
    stale = [path for path, text in pages() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if check:
        sys.stdout.writelines(f"out of date: {path}\n" for path in stale)
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for path, text in pages():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
