"""The generated reference and the listing of what is public are up to date; the site builds."""

from __future__ import annotations

import re
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
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    done = subprocess.run(
        [*command, "-b", "html", "-d", tmp_path / "trees", DOCS, tmp_path / "site"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    pages = [path.relative_to(tmp_path / "site") for path in (tmp_path / "site").glob("**/*.html")]
    sources = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.glob("**/*.md")}
    assert {path for path in sources if path.parts[:2] != ("rules", "prose")} <= {*pages}
    assert "Without --rule, every" in (tmp_path / "site" / "commands" / "run.html").read_text()
    for page in pages:
        text = (tmp_path / "site" / page).read_text()
        # Links may lead elsewhere; what a page is shown with is beside it.
        for tag in re.findall(r"<(?:script|link|img|iframe)[^>]*>", text):
            assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", tag), f"{page}: {tag}"
    for style in (tmp_path / "site").glob("**/*.css"):
        assert not re.search(r"""(?:url\(|@import)\s*["']?(?:https?:)?//""", style.read_text()), style
