"""The generated reference and the listing of what is public are up to date; the site builds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from smdbg_core import errors
from smdbg_core.cli.main import _COMMANDS

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("script", ["reference_pages.py", "public_surface.py"])
def test_what_is_generated_is_up_to_date(script: str) -> None:
    """If this fails, look at the difference: is it meant? Then run the script without `--check`."""
    done = subprocess.run(
        [sys.executable, DOCS / script, "--check"], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_each_command_and_error_has_a_page() -> None:
    assert {path.stem for path in (DOCS / "commands").glob("*.md")} == {*_COMMANDS, "README"}
    kinds = [getattr(errors, name) for name in errors.__all__]
    pages = [path for path in (DOCS / "errors").glob("*.md") if path.stem != "README"]
    assert len(pages) == sum(isinstance(one, type) and issubclass(one, Exception) for one in kinds)
    for page in pages:
        assert "**What to do.**" in page.read_text()


def test_the_site_builds_and_every_link_leads_somewhere(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    pytest.importorskip("furo")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    done = subprocess.run(
        [*command, "-b", "html", "-d", tmp_path / "trees", DOCS, tmp_path / "site"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "From nothing to a published rule" in (tmp_path / "site" / "tutorial.html").read_text()
    text = (tmp_path / "site" / "index.html").read_text()
    assert not [part for part in text.split('"') if part.startswith(("https://fonts", "https://cdn"))]
