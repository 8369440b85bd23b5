"""Pages in a browser: nothing is loaded, nothing fails, everything is drawn, names stay names."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from smdbg_core import Report, evaluate
from smdbg_core.report.service import read_service_reports
from tests.chromium import CHROMIUM, Chromium, chromium
from tests.core.report.html.runs import boosting_run, hostile_run, profiler_run, spoiled, tensor_run

pytest.importorskip("bokeh")
pytest.importorskip("jinja2")

from smdbg_core.report.html.page import render_html

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")

LIMIT = 4_000_000
"""Bytes that a page may have."""

PROFILER_SECTIONS = {
    "verdict", "coverage", "evidence", "job", "usage", "timelines", "devices", "steps", "phases", "loading",
    "balance", "spread", "bottlenecks", "rules-table", "rules",
}  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def tensors(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return tensor_run(tmp_path_factory.mktemp("tensors"))


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return profiler_run(tmp_path_factory.mktemp("profiled"))


def shown(browser: Chromium, report: Report, folder: Path, **options: object) -> None:
    """Open the page of a report and draw all charts."""
    page = folder / "report.html"
    text = render_html(report)
    assert len(text.encode()) < LIMIT
    page.write_text(text)
    browser.open(page, **options)  # type: ignore[arg-type]
    browser.run("smdbgReport.drawAll().then(() => 1)")


def sections(browser: Chromium) -> set[str]:
    return set(browser.run("[...document.querySelectorAll('section')].map((one) => one.id)"))


def sound(browser: Chromium) -> None:
    """Nothing failed, nothing was asked for, every chart has a canvas with something on it."""
    assert browser.errors == []
    assert browser.requests == []
    charts = "[...document.querySelectorAll('.plot')]"
    assert browser.run(f"{charts}.every((one) => one.dataset.drawn === 'yes')")
    deadline = time.monotonic() + 5
    # Canvases lie in shadow trees; a frame may pass before they are painted. A line across the middle of a
    # chart always meets an axis; reading all pixels would take most of the time.
    script = """(() => {
      const inside = (root) => [...root.querySelectorAll('*')].flatMap(
        (one) => [one, ...(one.shadowRoot ? inside(one.shadowRoot) : [])]);
      return [...document.querySelectorAll('.plot')].every((plot) => inside(plot).some((one) => {
        if (one.tagName !== 'CANVAS' || !one.width || !one.height) return false;
        const pixels = one.getContext('2d').getImageData(0, one.height >> 1, one.width, 1).data;
        return pixels.some((value, index) => index % 4 === 3 && value > 0);
      }));
    })()"""
    while not browser.run(script):
        assert time.monotonic() < deadline, "a chart is empty"
        time.sleep(0.1)
    assert browser.errors == []


def hovered(browser: Chromium) -> int:
    """Move the pointer over a map; how many tooltips came, none of them with an element of data."""
    script = """(() => {
      const inside = (root) => [...root.querySelectorAll('*')].flatMap(
        (one) => [one, ...(one.shadowRoot ? inside(one.shadowRoot) : [])]);
      const tips = inside(document).filter((one) => String(one.className).includes('bk-tooltip-content'));
      if (tips.some((one) => one.querySelector('img, svg, script'))) throw new Error('an element in a tooltip');
      return tips.length;
    })()"""
    seen = 0
    maps = (
        "smdbgReport.plots.findIndex((one) => /Where in the network|which device idles/.test(one.ariaLabel))"
    )
    chart = f"smdbgReport.plots[{browser.run(maps)}]"
    browser.run(f"{chart}.scrollIntoView({{block: 'center'}})")
    left, top, width, height = browser.run(
        f"(() => {{ const box = {chart}.getBoundingClientRect();"
        " return [box.left, box.top, box.width, box.height]; })()"
    )
    for part in range(2, 8):
        point = {"x": left + width * 0.6, "y": top + height * part / 10}
        browser.call("Input.dispatchMouseEvent", type="mouseMoved", **point)
        browser.run("new Promise((done) => setTimeout(done, 60))")
        seen += browser.run(script)
    return seen


@needs_chromium
def test_a_tensor_run(browser: Chromium, tensors: Report, tmp_path: Path) -> None:
    shown(browser, tensors, tmp_path)
    sound(browser)
    assert {"verdict", "coverage", "evidence", "layers", "losses", "rules"} <= sections(browser)
    assert "VanishingGradient" in browser.run("document.querySelector('.problems').innerText")
    questions = browser.run("[...document.querySelectorAll('figcaption b')].map((one) => one.innerText)")
    assert all("?" in question for question in questions)


@needs_chromium
def test_every_link_leads_somewhere(browser: Chromium, tensors: Report, tmp_path: Path) -> None:
    shown(browser, tensors, tmp_path)
    lost = browser.run(
        "[...document.querySelectorAll('a')].map((one) => one.getAttribute('href'))"
        ".filter((href) => !href.startsWith('#') || !document.getElementById(href.slice(1)))"
    )
    assert lost == []
    rule = browser.run("document.querySelectorAll('.problem .links a')[1].getAttribute('href')")
    browser.run("document.querySelectorAll('.problem .links a')[1].click()")
    browser.run("new Promise((done) => setTimeout(done, 50))")
    assert browser.run(f"document.querySelector('{rule}').open")


@needs_chromium
def test_a_profiler_run(browser: Chromium, profiled: Report, tmp_path: Path) -> None:
    shown(browser, profiled, tmp_path)
    sound(browser)
    assert sections(browser) >= PROFILER_SECTIONS
    assert {outcome.name for outcome in profiled.fired} >= {"LoadBalancing", "StepOutlier"}
    text = browser.run("document.querySelector('main').innerText")
    assert "Absent" not in text
    for heading in ("p99", "p95", "p50", "Times triggered", "Data points", "Recommendation"):
        assert heading in text


@needs_chromium
@pytest.mark.parametrize(
    ("objective", "absent"),
    [
        ("binary:logistic", {"AbsoluteErrorPerLabelBin", "MeanAbsoluteErrorPerLabelBin"}),
        ("multi:softmax", {"ROCCurve", "AbsoluteErrorPerLabelBin", "MeanAbsoluteErrorPerLabelBin"}),
        ("reg:squarederror", {"ROCCurve", "ConfusionMatrix", "EvaluationMetrics", "IterativeClassAccuracy"}),
    ],
)
def test_a_boosting_run(browser: Chromium, tmp_path: Path, objective: str, absent: set[str]) -> None:
    shown(browser, boosting_run(tmp_path / "run", objective), tmp_path)
    sound(browser)
    script = (
        "[...document.querySelectorAll('section[id^=boosting-]')].filter((one) => %s"
        "one.innerText.includes('Absent')).map((one) => one.id.slice(9))"
    )
    assert set(browser.run(script % "")) == absent
    assert len(browser.run(script % "!")) == 10 - len(absent)


@needs_chromium
@pytest.mark.parametrize("kind", ["trial", "profiler"])
def test_hostile_names_are_inert(
    browser: Chromium, tensors: Report, profiled: Report, tmp_path: Path, kind: str
) -> None:
    report = hostile_run(tmp_path / "run") if kind == "trial" else profiled
    assert report.fired
    shown(browser, spoiled(report), tmp_path)
    sound(browser)
    assert hovered(browser)
    assert (browser.errors, browser.requests) == ([], [])
    assert browser.run("window.pwned") is None
    assert browser.run("document.querySelectorAll('main img, main svg').length") == 0
    assert browser.run("document.querySelectorAll('script:not([type])').length") == 2
    assert "49" not in browser.run("document.querySelector('.uri').innerText")


@needs_chromium
def test_narrow_and_dark(browser: Chromium, tensors: Report, tmp_path: Path) -> None:
    shown(browser, tensors, tmp_path, width=390, height=800, dark=True)
    sound(browser)
    assert browser.run("document.documentElement.scrollWidth") <= 390
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"


@needs_chromium
def test_charts_by_keyboard(browser: Chromium, tensors: Report, tmp_path: Path) -> None:
    shown(browser, tensors, tmp_path)
    span = (
        "(() => { const found = Bokeh.index.roots.map((one) => one.model).filter((one) => one.type === 'Figure');"
        " const range = found.find((one) => one.x_range.start !== undefined).x_range; return [range.start, range.end]; })()"
    )
    browser.run("document.querySelector('.plot').focus()")
    start, end = browser.run(span)
    browser.press("+")
    near = browser.run(span)
    assert near[1] - near[0] == pytest.approx((end - start) / 2)
    browser.press("ArrowRight")
    assert browser.run(span)[0] > near[0]
    browser.press("0")
    assert browser.run(span) == pytest.approx([start, end], rel=0.2)


@needs_chromium
def test_charts_follow_the_theme(browser: Chromium, tensors: Report, tmp_path: Path) -> None:
    shown(browser, tensors, tmp_path)
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.call("Emulation.setEmulatedMedia", features=features)
    browser.run("smdbgReport.drawAll().then(() => 1)")
    sound(browser)


@needs_chromium
def test_files_of_the_service(browser: Chromium, profiled: Report, tmp_path: Path) -> None:
    from tests.core.report.test_service import write_service_files

    report = read_service_reports(write_service_files(tmp_path / "job", profiled))
    assert report is not None
    shown(browser, report, tmp_path)
    sound(browser)
    assert PROFILER_SECTIONS - {"steps"} <= sections(browser)
    assert "Absent" in browser.run("document.getElementById('timelines').innerText")


def test_a_page_without_evidence(tmp_path: Path, tensors: Report) -> None:
    report = evaluate(tensors.run.uri)
    assert "Points were not recorded" in render_html(report)


def test_nothing_remote_is_named(tensors: Report) -> None:
    text = render_html(tensors)
    own = text[: text.index("<script>")]
    assert "http:" not in own
    assert "https:" not in own
    assert "src=" not in own


def test_a_notebook_shows_the_page_in_a_frame(tensors: Report) -> None:
    html = tensors._repr_html_()
    assert html.startswith("<iframe")
    assert 'sandbox="allow-scripts' in html
    assert "<script" not in html


def test_a_notebook_shows_text_without_evidence(tensors: Report) -> None:
    assert evaluate(tensors.run.uri)._repr_html_().startswith("<pre>")
