"""Checking configurations and jobs."""

from __future__ import annotations

import json
from pathlib import Path

from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.config import load_config
from smdbg_core.sagemaker.check import Check, check_plan
from smdbg_core.sagemaker.jobs import read_job
from tests.core.sagemaker.test_jobs import describe
from tests.distributions import RULE

CONFIG = """
[sagemaker]
framework = "pytorch"
collections = {mine = {save_interval = 5}}
[[rules]]
rule = "VanishingGradient"
threshold = 1e-6
[[rules]]
rule = "WeightUpdateRatio"
num_steps = 100
[[rules]]
rule = "TreeDepth"
[[rules]]
rule = "AllZero"
tensor_regex = "relu*"
[[rules]]
rule = "UnchangedTensor"
name = "frozen"
collection_names = "biases"
[[rules]]
rule = "SimilarAcrossRuns"
other_trial_0 = "s3://bucket/other"
[[rules]]
rule = "StepOutlier"
[[rules]]
rule = "CPUBottleneck"
"""


def check(tmp_path: Path, text: str = CONFIG, **options: int) -> Check:
    (tmp_path / "smdbg.toml").write_text(text)
    return check_plan(load_config(str(tmp_path / "smdbg.toml")), **options)


def test_what_a_configuration_comes_to(tmp_path: Path) -> None:
    found = check(tmp_path)
    rules = {rule.name: rule for rule in found.rules}
    assert {name: rule.decides for name, rule in rules.items()} == {
        "VanishingGradient": "yes",
        "WeightUpdateRatio": "no",
        "TreeDepth": "unknown",
        "AllZero": "unknown",
        "frozen": "no",
        "SimilarAcrossRuns": "yes",
        "StepOutlier": "unknown",
        "CPUBottleneck": "yes",
    }
    assert "never saved twice within 100 steps" in rules["WeightUpdateRatio"].why
    assert rules["frozen"].why == "nothing saves collection biases: add it to the collections"
    assert rules["TreeDepth"].problems == ["it is for xgboost, and the training is pytorch's"]
    assert "looks like a glob" in rules["AllZero"].problems[0]
    assert found.problems == ["collection mine saves nothing: no hook fills it, and it has no include_regex"]
    assert not found.good
    source = str(tmp_path / "smdbg.toml")
    values = {value.name: (value.value, value.source) for value in rules["VanishingGradient"].parameters}
    assert values["threshold"] == (1e-6, source)
    assert values["start_step"] == (0, "default")
    sources = {value.name: value.source for value in rules["SimilarAcrossRuns"].parameters}
    assert sources["other_trials"] == f"{source}, as other_trial_0"


def test_short_training(tmp_path: Path) -> None:
    text = '[[rules]]\nrule = "WeightUpdateRatio"\n'
    assert check(tmp_path, text).rules[0].from_step == 500
    assert check(tmp_path, text, total_steps=500).rules[0].decides == "no"
    assert check(tmp_path, text, total_steps=501).good


def test_rules_that_want_one_collection_differently(tmp_path: Path) -> None:
    rule = '[[rules]]\nrule = "VanishingGradient"\nname = "{}"\ncollections = {{gradients = {{save_interval = {}}}}}\n'
    found = check(tmp_path, rule.format("a", 3) + rule.format("b", 4))
    assert found.problems[0].startswith("collection gradients: a wants save_interval=3, b wants")


def test_a_job_saves_what_it_says_and_nothing_else() -> None:
    registry = Registry()
    job = read_job(describe(), registry)
    found = check_plan(job.config("job.json"), job, registry=registry)
    rules = {rule.name: rule for rule in found.rules}
    assert set(rules) == {"vanishing", "LossNotDecreasing", "StepOutlier", "report"}
    assert rules["vanishing"].service_status == "IssuesFound"
    assert rules["vanishing"].actions == ["StopTraining", "Email"]
    assert rules["vanishing"].decides == "yes"
    assert found.collections == {"gradients": {"save_interval": "500"}}
    document = describe()
    del document["DebugHookConfig"]["CollectionConfigurations"]
    job = read_job(document, registry)
    rules = {one.name: one for one in check_plan(job.config(), job, registry=registry).rules}
    assert rules["vanishing"].decides == "no"
    assert rules["LossNotDecreasing"].decides == "yes"
    document["ProfilerConfig"]["DisableProfiler"] = True
    job = read_job(document, registry)
    rules = {one.name: one for one in check_plan(job.config(), job, registry=registry).rules}
    assert (rules["StepOutlier"].decides, rules["StepOutlier"].why) == ("no", "the profiler is disabled")


def test_without_rules_every_rule_is_checked(tmp_path: Path) -> None:
    found = check(tmp_path, "[sagemaker]\n")
    assert len(found.rules) >= 33
    assert "needs a parameter" in next(rule.why for rule in found.rules if rule.name == "AllZero")


def test_a_rule_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        RULE.format(name="Mine").replace("    def reads", "    limit: float = 3.0\n    def reads", 1)
    )
    found = check(tmp_path, '[[rules]]\nfile = "mine.py:Mine"\nlimit = 4\n')
    values = {value.name: (value.value, value.source) for value in found.rules[0].parameters}
    assert values["limit"] == (4.0, str(tmp_path / "smdbg.toml"))


def test_documents_are_strict_json(tmp_path: Path) -> None:
    text = json.dumps(check(tmp_path).document(), allow_nan=False)
    assert set(json.loads(text)) == {"rules", "collections", "problems", "notices"}
