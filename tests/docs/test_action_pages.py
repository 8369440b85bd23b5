"""The pages of actions are up to date."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_pages_are_generated_from_the_declarations() -> None:
    done = subprocess.run(
        [sys.executable, DOCS / "action_pages.py", "--check"], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    pages = {path.stem for path in (DOCS / "actions").glob("*.md")} - {"README"}
    assert pages == {"email", "log", "sms", "stop_file", "stop_training", "webhook"}
