"""Code in the documentation does what it says."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from smdbg_core import hookspecs, open_trial
from smdbg_core.cli.main import _COMMANDS

ROOT = Path(__file__).resolve().parents[2]
# Tests of their own execute the code of the tutorial, of the enterprise's policy and of the rules.
OTHERS = {"docs/tutorial.md", "docs/enterprise.md"}
PAGES = [
    name
    for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("docs/actions/*.md")))
    if (name := path.relative_to(ROOT).as_posix()) not in OTHERS and "```python\n" in path.read_text()
]


@pytest.mark.parametrize("page", PAGES)
def test_code_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(
        r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", (ROOT / page).read_text(), re.DOTALL
    )
    assert blocks
    monkeypatch.chdir(tmp_path)
    # A page is read from top to bottom, and what it defines can be pickled as from any module.
    module = ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", module)
    for code, output in blocks:
        exec(compile(code, page, "exec", dont_inherit=True), module.__dict__)
        printed = capsys.readouterr().out
        assert not output or printed == output


def test_links_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_command_and_hook_is_documented() -> None:
    readme = (ROOT / "README.md").read_text()
    for command in _COMMANDS:
        assert f"`smdbg {command}" in readme
    for name in dir(hookspecs):
        if name.startswith("smdbg_"):
            assert getattr(hookspecs, name).__doc__


def test_recording_a_pytorch_model(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    import runpy

    record = runpy.run_path(str(ROOT / "docs/examples/record_pytorch.py"))["record"]
    from smdbg_core import TrialWriter

    class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.fc1 = torch.nn.Linear(4, 3)
            self.relu = torch.nn.ReLU()

        def forward(self, x: object) -> object:
            return self.relu(self.fc1(x))

    model, loss = Net(), torch.nn.CrossEntropyLoss()
    with TrialWriter(tmp_path / "t") as writer, writer.step(0, mode="TRAIN") as step:
        handles = record(model, loss, step)
        loss(model(torch.randn(5, 4)), torch.tensor([0, 1, 2, 0, 1])).backward()
        for handle in handles:
            handle.remove()
    assert open_trial(str(tmp_path / "t")).tensor_names() == [
        "CrossEntropyLoss_input_0",
        "CrossEntropyLoss_input_1",
        "CrossEntropyLoss_output_0",
        "Net_fc1.bias",
        "Net_fc1.weight",
        "Net_input_0",
        "Net_output_0",
        "fc1_input_0",
        "fc1_output_0",
        "gradient/Net_fc1.bias",
        "gradient/Net_fc1.weight",
        "relu_input_0",
        "relu_output_0",
    ]
