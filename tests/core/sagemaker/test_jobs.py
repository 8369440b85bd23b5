"""Reading requests and responses: what exists in the wild, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.action_roster import ActionConfig
from smdbg_core.engine.roster import Roster
from smdbg_core.errors import ConfigError
from smdbg_core.sagemaker.jobs import load_job, load_plan, read_job

REGISTRY = Registry()
ACTIONS = (
    r"[{\"name\": \"stoptraining\", \"training_job_prefix\": \"job-1\"}, "
    r"{\"endpoint\": \"A.b@example.com\", \"name\": \"email\"}]"
)


def describe(**changes: Any) -> dict[str, Any]:
    """A DescribeTrainingJob response, as the service gives it."""
    image = "895741380848.dkr.ecr.us-west-2.amazonaws.com/sagemaker-debugger-rules:latest"
    response: dict[str, Any] = {
        "TrainingJobName": "job-1",
        "TrainingJobArn": "arn:aws:sagemaker:us-west-2:111122223333:training-job/job-1",
        "TrainingJobStatus": "InProgress",
        "SecondaryStatus": "Training",
        "AlgorithmSpecification": {
            "TrainingImage": "763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:2.0",
            "TrainingInputMode": "File",
        },
        "DebugHookConfig": {
            "S3OutputPath": "s3://bucket/out",
            "CollectionConfigurations": [
                {"CollectionName": "gradients", "CollectionParameters": {"save_interval": "500"}}
            ],
        },
        "DebugRuleConfigurations": [
            {
                "RuleConfigurationName": "vanishing",
                "RuleEvaluatorImage": image,
                "VolumeSizeInGB": 0,
                "RuleParameters": {
                    "rule_to_invoke": "VanishingGradient",
                    "threshold": "1e-6",
                    "action_json": ACTIONS,
                },
            },
            {
                "RuleConfigurationName": "LossNotDecreasing",
                "RuleEvaluatorImage": image,
                "RuleParameters": {"rule_to_invoke": "LossNotDecreasing", "mode": "None", "num_steps": ""},
            },
        ],
        "DebugRuleEvaluationStatuses": [
            {
                "RuleConfigurationName": "vanishing",
                "RuleEvaluationStatus": "IssuesFound",
                "StatusDetails": "x",
            }
        ],
        "ProfilerConfig": {"S3OutputPath": "s3://bucket/out", "ProfilingIntervalInMilliseconds": 500},
        "ProfilerRuleConfigurations": [
            {
                "RuleConfigurationName": "StepOutlier",
                "RuleEvaluatorImage": image,
                "RuleParameters": {"rule_to_invoke": "StepOutlier", "stddev": "3", "mode": "None"},
            },
            {
                "RuleConfigurationName": "report",
                "RuleEvaluatorImage": image,
                "RuleParameters": {
                    "rule_to_invoke": "ProfilerReport",
                    "opt_out_telemetry": "False",
                    "custom_rule_parameters": "{'CPUBottleneck_threshold': 90, 'StepOutlier_mode': None}",
                },
            },
        ],
    }
    return response | changes


def with_parameters(rule: str, **parameters: Any) -> dict[str, Any]:
    entry = {
        "RuleConfigurationName": "it",
        "RuleEvaluatorImage": "image",
        "RuleParameters": {"rule_to_invoke": rule, **parameters},
    }
    return {"TrainingJobName": "job-1", "DebugRuleConfigurations": [entry]}


def test_a_response() -> None:
    job = read_job(describe(), REGISTRY)
    assert (job.name, job.path) == ("job-1", "s3://bucket/out/job-1")
    assert job.statuses == {"vanishing": "IssuesFound"}
    assert job.settings.framework == "pytorch"
    assert job.settings.collections == {"gradients": {"save_interval": "500"}}
    assert job.settings.profiling_interval_ms == 500
    vanishing = job.rules[0]
    assert vanishing.actions == (
        ActionConfig("StopTraining", "StopTraining", {}),
        ActionConfig("Email", "Email", {"email_address": "A.b@example.com"}),
    )
    with REGISTRY.active():
        rules = {entry.name: entry.rule for entry in Roster(REGISTRY, job.rules).entries}
    assert rules["vanishing"].parameters["threshold"] == 1e-6
    assert rules["LossNotDecreasing"].parameters["num_steps"] == 10
    assert rules["LossNotDecreasing"].parameters["mode"] is None
    assert rules["StepOutlier"].parameters["mode"] is None
    assert rules["report"].parameters["CPUBottleneck_threshold"] == 90


def test_metrics_that_are_elsewhere() -> None:
    job = read_job(describe(ProfilerConfig={"S3OutputPath": "s3://other"}), REGISTRY)
    assert job.settings.profiler_s3_output_path == "s3://other"
    assert job.notices == ["the profiler's output is elsewhere, below s3://other: judge it on its own"]
    job = read_job(describe(DebugHookConfig=None), REGISTRY)
    assert (job.path, job.notices) == ("s3://bucket/out/job-1", [])


@pytest.mark.parametrize("status", ["Completed", "Failed", "Stopped"])
def test_actions_of_a_job_that_has_ended_are_left_out(status: str, tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    file.write_text(json.dumps(describe(TrainingJobStatus=status)))
    config, job = load_plan(str(file))
    assert job is not None
    assert job.ended
    assert job.notices == ["the job has ended: its actions are left out"]
    assert all(rule.actions == () for rule in config.rule_configs())
    assert job.rules[0].actions  # they can be exported again


def test_actions_of_one_kind_have_names_of_their_own() -> None:
    text = json.dumps([{"name": "email", "endpoint": f"{n}@example.com"} for n in "aba"])
    (rule,) = read_job(with_parameters("TreeDepth", action_json=text), REGISTRY).rules
    names = [action.name for action in rule.actions if isinstance(action, ActionConfig)]
    assert names == ["Email", "Email-2", "Email"]


def test_a_prefix_that_was_given_is_kept() -> None:
    text = r"{\"training_job_prefix\": \"job-1\", \"name\": \"stoptraining\"}"
    (rule,) = read_job(with_parameters("TreeDepth", action_json=text), REGISTRY).rules
    assert rule.actions == (ActionConfig("StopTraining", "StopTraining", {"training_job_prefix": "job-1"}),)


@pytest.mark.parametrize("text", ["", "None", "null"])
def test_nothing_is_nothing(text: str) -> None:
    document = with_parameters(
        "AllZero", threshold=text, tensor_regex=".*", action_json=text, end_step=text, base_trial="s3://x"
    )
    (rule,) = read_job(document, REGISTRY).rules
    made = REGISTRY.resolve("AllZero").object(**rule.parameters)
    assert made.parameters["threshold"] == 100
    assert made.parameters["end_step"] is None
    assert rule.actions == ()


def test_numbers_that_users_wrote_as_numbers() -> None:
    (rule,) = read_job(with_parameters("ExplodingTensor", only_nan=True, start_step=3), REGISTRY).rules
    made = REGISTRY.resolve("ExplodingTensor").object(**rule.parameters)
    assert (made.parameters["only_nan"], made.parameters["start_step"]) == (True, 3)


def test_custom_rules_are_left_out_with_a_notice() -> None:
    document = with_parameters("MyRule", source_s3_uri="s3://bucket/rules/my_rule.py")
    job = read_job(document, REGISTRY)
    assert job.rules == ()
    assert job.notices[0].startswith("it is left out: its code is in s3://bucket/rules/my_rule.py")


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ([], "no training job with rules"),
        ({"TrainingJobName": "x"}, "no training job with rules"),
        ({"DebugRuleConfigurations": "x"}, "DebugRuleConfigurations: a str, not a list"),
        ({"DebugRuleConfigurations": [3]}, r"DebugRuleConfigurations\[0\]: a int, not an object"),
        ({"DebugRuleConfigurations": [{"RuleConfigurationName": "x"}]}, "rule_to_invoke"),
        (with_parameters("TreeDepht"), r"\[0\] \(it\): no rule 'TreeDepht'; did you mean 'TreeDepth'"),
        (with_parameters("TreeDepth", action_json="{"), "not JSON of an action"),
        (with_parameters("TreeDepth", action_json='{"name": "emial"}'), "did you mean 'email'"),
        (with_parameters("ProfilerReport", custom_rule_parameters="exit()"), "neither a JSON object nor"),
        ({"DebugHookConfig": {"CollectionConfigurations": [{}]}}, "CollectionName is missing"),
    ],
)
def test_refusals(document: Any, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        read_job(document, REGISTRY)


def test_files(tmp_path: Path) -> None:
    for name, content, complaint in (
        ("a.json", "{", "not JSON"),
        ("b.json", "{}", "b.json: no training job"),
        ("c.json", None, "cannot be read"),
    ):
        if content is not None:
            (tmp_path / name).write_text(content)
        with pytest.raises(ConfigError, match=complaint):
            load_job(str(tmp_path / name))
    (tmp_path / "job.json").write_text(json.dumps(describe()))
    config, job = load_plan(str(tmp_path / "job.json"))
    assert job is not None
    assert (config.path, config.job_name) == ("s3://bucket/out/job-1", "job-1")
    assert config.rule_configs() == list(job.rules)
