"""The pages of rules: up to date, and their examples do what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted(path for path in (DOCS / "rules").glob("*.md") if path.stem != "README")


def test_pages_are_generated_from_the_declarations() -> None:
    done = subprocess.run(
        [sys.executable, DOCS / "rule_pages.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""
    assert done.returncode == 0
    assert len(PAGES) == 33


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_examples(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ((code, output),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", page.read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(page), "exec", dont_inherit=True), {"__name__": "example"})
    assert capsys.readouterr().out == output
