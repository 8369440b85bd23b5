"""Discovery: what is found, what may be used, and what a broken plugin costs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from itertools import count
from pathlib import Path

import pytest

from smdbg_core import ConfigError, PluginConflictError, PluginError, Registry, evaluate
from smdbg_core.discovery.finder import find
from smdbg_core.discovery.identity import Identity, normalised
from smdbg_core.discovery.policy import Policy
from tests.builders import write_trial
from tests.distributions import RULE, install

_UNIQUE = count()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on `sys.path`, before all others."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    for name in ("SMDBG_PLUGINS", "SMDBG_DISABLE", "SMDBG_THIRD_PARTY", "SMDBG_STRICT"):
        monkeypatch.delenv(name, raising=False)
    return folder


def add_rule(site: Path, distribution: str, name: str, source: str = RULE, **options: object) -> str:
    """A distribution with one rule in a module of its own."""
    module = f"plugin_module_{next(_UNIQUE)}"
    install(
        site, distribution, {name: f"{module}:{name}"}, modules={module: source.format(name=name)}, **options
    )  # type: ignore[arg-type]
    return module


def test_plugins_are_found_without_importing_them(site: Path) -> None:
    module = add_rule(site, "Acme.Rules_x", "Mine", version="2.1", requires=["numpy>=1"])
    (spec,) = [spec for spec in find() if spec.name == "Mine"]
    assert spec.identity == "acme-rules-x==2.1[Mine]"
    assert (spec.kind, spec.qualified, spec.requirements) == ("rule", "acme-rules-x[Mine]", ("numpy>=1",))
    assert module not in sys.modules
    loaded = Registry().resolve("mine")
    assert loaded.object.__name__ == "Mine"
    assert module in sys.modules


def test_the_first_place_on_the_path_wins_and_none_counts_twice(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_rule(site, "acme", "Mine", version="1")
    other = tmp_path / "other"
    other.mkdir()
    add_rule(other, "acme", "Mine", version="2")
    link = tmp_path / "link"
    link.symlink_to(site)
    versions = [s.version for s in find([str(site), str(link), str(site), str(other)]) if s.name == "Mine"]
    assert versions == ["1"]


def test_archives_are_asked_through_importlib(tmp_path: Path) -> None:
    site = tmp_path / "s"
    site.mkdir()
    add_rule(site, "zipped", "Zipped")
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in site.rglob("*"):
            file.write(path, path.relative_to(site))
    assert [spec.name for spec in find([str(archive)])] == ["Zipped"]


@pytest.mark.parametrize("names", [("aaa", "zzz"), ("zzz", "aaa")])
def test_third_parties_with_one_name_need_qualified_names(site: Path, names: tuple[str, str]) -> None:
    for name in names:
        add_rule(site, name, "Mine")
    registry = Registry()
    with pytest.raises(PluginConflictError, match=r"say aaa\[Mine\] or zzz\[Mine\]"):
        registry.resolve("Mine")
    assert registry.resolve("zzz[mine]").spec.distribution == "zzz"
    assert sum("is claimed by" in problem for problem in registry.problems()) == 2


def test_first_party_names_stay_with_their_owner(site: Path) -> None:
    add_rule(site, "aaa", "allzero")
    add_rule(site, "aab", "AllZero")
    registry = Registry()
    assert registry.resolve("ALLZERO").spec.distribution == "smdbg-builtin-rules"
    assert registry.resolve("aab[AllZero]").spec.distribution == "aab"
    assert any("belongs to smdbg-builtin-rules" in problem for problem in registry.problems())
    assert {s.state for s in registry.states() if s.spec.distribution in ("aaa", "aab")} == {"conflict"}


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("raise ValueError('broken\\nbadly')", "ValueError: broken"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("import no_such_module_at_all", "ModuleNotFoundError"),
        ("", "AttributeError"),
        ("{name} = 3", "it is no subclass of TensorRule"),
        ("class {name}: pass", "it is no subclass of TensorRule"),
        (
            "from smdbg_core import TensorRule\nclass {name}(TensorRule): '''x'''",
            "does not define reads, evaluate",
        ),
        ("def f(:", "SyntaxError"),
    ],
    ids=["raise", "exit", "import", "missing", "value", "class", "abstract", "syntax"],
)
def test_a_broken_plugin_costs_only_itself(site: Path, tmp_path: Path, source: str, cause: str) -> None:
    add_rule(site, "bad-dist", "Bad", source)
    registry = Registry()
    with pytest.raises(PluginError, match=r"bad-dist==1\.0\[Bad\]: ") as caught:
        registry.resolve("Bad")
    assert cause in str(caught.value)
    assert "\n" not in str(caught.value)
    (state,) = [state for state in registry.states() if state.spec.name == "Bad"]
    assert state.state == "broken"
    report = evaluate(write_trial(tmp_path / "t", {0: {"gradient/a": 1.0}}), registry=Registry())
    assert report.outcome("VanishingGradient").status == "clean"
    assert any(warning.startswith("bad-dist==1.0[Bad]: ") for warning in report.warnings)


def test_bad_names_are_contract_errors(site: Path) -> None:
    module = f"plugin_module_{next(_UNIQUE)}"
    install(site, "odd", {"my_rule": f"{module}:Mine"}, modules={module: RULE.format(name="Mine")})
    with pytest.raises(PluginError, match="letters and digits that begin with a capital"):
        Registry().resolve("odd[my_rule]")


def test_a_claim_on_another_version_is_checked_before_import(site: Path) -> None:
    module = add_rule(site, "future", "Future", requires=["smdbg-core>=99"])
    registry = Registry()
    with pytest.raises(PluginError, match="it requires smdbg-core >=99, and"):
        registry.resolve("Future")
    assert module not in sys.modules
    (state,) = [state for state in registry.states() if state.spec.name == "Future"]
    assert state.state == "incompatible"


def test_an_unmet_requirement_that_is_not_imported_is_a_warning(site: Path) -> None:
    add_rule(site, "wanting", "Wanting", requires=["no-such-dist>=2", "extra-only; extra == 'x'"])
    registry = Registry()
    assert registry.resolve("Wanting").object
    (problem,) = [p for p in registry.problems() if "wanting" in p]
    assert problem == "wanting==1.0[Wanting]: it requires no-such-dist >=2, which is not installed"


def test_what_plugins_print_is_no_output(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_rule(site, "loud", "Loud", "print('hello')\n" + RULE)
    Registry().resolve("Loud")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "hello\n")


def test_policies(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_rule(site, "acme", "Mine")

    def names(policy: Policy | None = None) -> set[str]:
        return {spec.name for spec in Registry(policy).rules()}

    assert "Mine" in names()
    for spelling in ("mine", "acme", "ACME", "acme[Mine]", "acme==1.0[Mine]"):
        assert "Mine" not in names(Policy(disabled=(spelling,))), spelling
        assert names(Policy(pinned=(spelling,))) == {"Mine"}, spelling
    assert "Mine" not in names(Policy(third_party=False))
    with pytest.raises(ConfigError, match=r"acme==1\.0\[Mine\] is not used: disabled"):
        Registry(Policy(disabled=("Mine",))).resolve("Mine")
    assert Registry(Policy(disabled=("Minee",))).problems() == [
        "disabled plugin 'Minee' is not installed; did you mean 'Mine'?"
    ]
    with pytest.raises(ConfigError, match="required plugins are not there: other"):
        Registry(Policy(required=("other",)))
    monkeypatch.setenv("SMDBG_DISABLE", "AllZero, Mine")
    assert not names() & {"AllZero", "Mine"}
    monkeypatch.setenv("SMDBG_PLUGINS", "AllZero,VanishingGradient")
    assert names() == {"VanishingGradient"}
    monkeypatch.setenv("SMDBG_PLUGINS", "")
    assert names(Policy(pinned=("Mine",))) == set()
    monkeypatch.delenv("SMDBG_PLUGINS")
    monkeypatch.setenv("SMDBG_THIRD_PARTY", "0")
    assert "Mine" not in names()
    monkeypatch.setenv("SMDBG_STRICT", "1")
    monkeypatch.setenv("SMDBG_DISABLE", "Nope")
    with pytest.raises(ConfigError, match="'Nope' is not installed"):
        Registry()


def test_unknown_names_are_helped(site: Path) -> None:
    with pytest.raises(ConfigError, match="no rule 'VanishingGradeint'; did you mean 'VanishingGradient'"):
        Registry().resolve("VanishingGradeint")
    with pytest.raises(ConfigError, match=r'no rules are installed; pip install "smdbg-core\[all\]"'):
        Registry(specs=()).resolve("AllZero")


def test_hook_plugins_are_loaded_in_order(site: Path) -> None:
    source = "from smdbg_core import hookimpl\n@hookimpl\ndef smdbg_run_finished(report): pass\n"
    for name in ("zed", "abc"):
        install(
            site, name, {"hooks": f"hooks_{name}"}, group="smdbg.plugins", modules={f"hooks_{name}": source}
        )
    install(site, "bad", {"hooks": "hooks_bad"}, group="smdbg.plugins", modules={"hooks_bad": "1/0"})
    registry = Registry()
    assert [identity for identity, _ in registry.load_hooks()] == ["abc==1.0[hooks]", "zed==1.0[hooks]"]
    assert any("bad==1.0[hooks]: ZeroDivisionError" in problem for problem in registry.problems())
    with pytest.raises(PluginError, match="ZeroDivisionError"):
        Registry(Policy(strict=True)).load_hooks()


@pytest.mark.parametrize(
    ("group", "source", "cause"),
    [
        ("smdbg.rules", "1/0", "ZeroDivisionError"),
        ("smdbg.actions", "1/0", "ZeroDivisionError"),
        ("smdbg.plugins", "1/0", "ZeroDivisionError"),
        (
            "smdbg.plugins",
            "from smdbg_core import hookimpl\nclass It:\n @hookimpl\n def smdbg_run_finished(self, reprot): 0\nIt = It()",
            "Argument(s) {'reprot'} are declared in the hookimpl but can not be found in the hookspec",
        ),
    ],
)
def test_nothing_is_judged_when_a_required_plugin_is_broken(
    site: Path, tmp_path: Path, group: str, source: str, cause: str
) -> None:
    module = f"plugin_module_{next(_UNIQUE)}"
    install(site, "bad", {"It": f"{module}:It"}, group=group, modules={module: source})
    trial = write_trial(tmp_path / "t", {0: {"gradient/a": 1.0}})
    with pytest.raises(ConfigError) as caught:
        evaluate(trial, ["VanishingGradient"], registry=Registry(Policy(required=("bad",))))
    assert str(caught.value).startswith("required plugin bad==1.0[It]: ")
    assert cause in str(caught.value)
    assert evaluate(trial, ["VanishingGradient"], registry=Registry()).outcomes[0].status == "clean"


def test_in_strict_mode_a_broken_rule_is_fatal(site: Path, tmp_path: Path) -> None:
    add_rule(site, "bad", "Bad", "1/0")
    trial = write_trial(tmp_path / "t", {0: {"gradient/a": 1.0}})
    with pytest.raises(PluginError, match="ZeroDivisionError"):
        evaluate(trial, registry=Registry(Policy(strict=True)))


def test_many_distributions_cost_few_files(tmp_path: Path) -> None:
    site = tmp_path / "many"
    for number in range(400):
        info = site / f"dist{number}-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Name: dist{number}\nVersion: 1\n")
        (info / "entry_points.txt").write_text("[console_scripts]\nx = y:z\n")
    install(site, "one", {"One": "m:One"})
    opened = (
        "import os, sys\nfrom smdbg_core.discovery import finder\n"
        "real, seen = os.open, []\n"
        "os.open = lambda p, *a: seen.append(p) or real(p, *a)\n"
        f"print([s.name for s in finder.find([{str(site)!r}])], len(seen), 'importlib.metadata' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", opened], capture_output=True, text=True, check=True)
    assert done.stdout == "['One'] 402 False\n"


def test_many_plugins_cost_two_files_each_and_no_import(tmp_path: Path) -> None:
    site = tmp_path / "many"
    for number in range(400):
        install(site, f"dist{number}", {f"Rule{number}": f"module{number}:Rule{number}"})
    counted = (
        "import os, sys\nfrom smdbg_core.discovery.registry import Registry\n"
        f"sys.path.insert(0, {str(site)!r})\n"
        "real, seen, before = os.open, [], set(sys.modules)\n"
        "os.open = lambda p, *a: seen.append(p) or real(p, *a)\n"
        "states = [s for s in Registry().states() if s.spec.distribution.startswith('dist')]\n"
        "read = [p for p in seen if 'many' in str(p)]\n"
        "print(len(states), {s.state for s in states}, len(read), sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", counted], capture_output=True, text=True, check=True)
    assert done.stdout == "400 {'found'} 800 []\n"


def test_rules_with_one_name_both_judge_under_their_whole_names(site: Path, tmp_path: Path) -> None:
    for name in ("aaa", "zzz"):
        add_rule(site, name, "Mine")
    add_rule(site, "usurper", "VanishingGradient")
    trial = write_trial(tmp_path / "t", {0: {"gradient/a": 1.0}})
    given = {"zzz[mine]": {"start_step": 1}, "VanishingGradient": {"threshold": 2.0}}
    report = evaluate(trial, registry=Registry(), parameters=given)
    assert report.outcome("aaa[Mine]").status == "clean"
    assert report.outcome("zzz[Mine]").parameters["start_step"] == 1
    assert report.outcome("VanishingGradient").status == "fired"
    assert report.outcome("usurper[VanishingGradient]").status == "clean"
    both = evaluate(trial, ["aaa[mine]", "zzz==1.0[Mine]"], registry=Registry())
    assert [outcome.name for outcome in both.outcomes] == ["aaa[Mine]", "zzz[Mine]"]


def test_leaving_while_it_says_what_it_reads_costs_only_the_rule(site: Path, tmp_path: Path) -> None:
    source = RULE.replace("return Reads(", "raise SystemExit(4); Reads(")
    add_rule(site, "leaver", "Leaver", source)
    report = evaluate(write_trial(tmp_path / "t", {0: {"gradient/a": 1.0}}), registry=Registry())
    assert report.outcome("Leaver").reason == "reads: SystemExit: 4"
    assert report.outcome("VanishingGradient").status == "clean"


def test_identities() -> None:
    assert normalised("My.Dist__x") == "my-dist-x"
    assert Identity.parse("a==1.0[B]") == ("a", "b")
    assert Identity.parse("[x") is None
    assert Identity.parse("") is None
