"""The pictures of the README: pages of two generated runs, as headless Chromium shows them.

python -m tests.pictures docs/pictures
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

from smdbg_core import Report, evaluate
from smdbg_core.cli.demo import SICK, train
from smdbg_core.report.html.page import render_html
from tests.chromium import Chromium, chromium
from tests.profiler_day import write_day

__all__ = ["main"]

_WIDTH, _HEIGHT = 1200, 900
_PARTS = {"trial": ("verdict", "layers"), "profiler": ("verdict", "timelines")}


def main(target: Path) -> None:
    """Make the runs, render their pages, and save pictures of their parts."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), chromium() as browser:
        Path("runs").mkdir()
        train(Path("runs/sick"), SICK)
        write_day(Path("runs/day"), healthy=False)
        for name, run in (("trial", "runs/sick"), ("profiler", "runs/day")):
            _picture(browser, evaluate(run, evidence=True), name, target)


def _picture(browser: Chromium, report: Report, name: str, target: Path) -> None:
    page = Path(f"{name}.html")
    page.write_text(render_html(report))
    browser.open(page, width=_WIDTH, height=_HEIGHT)
    browser.run("smdbgReport.drawAll().then(() => 1)")
    browser.run("new Promise((done) => setTimeout(done, 500))")
    for part in _PARTS[name]:
        top = "0" if part == "verdict" else f"document.getElementById('{part}').offsetTop"
        browser.run(f"scrollTo(0, {top})")
        browser.run("new Promise((done) => setTimeout(done, 200))")
        browser.screenshot(target / f"{name}-{part}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
