"""Builds requests with a real SDK and writes them down; run by the Python of an environment that has one.

    python drive_sdk.py original|ours sdk2|core FILE

Standard library, the SDK and what is installed beside it only: it runs where the tests do not.
"""

# ruff: noqa: B023, E731 - what is made in a loop is called before the next turn
import json
import os
import sys

for variable, value in (
    ("AWS_DEFAULT_REGION", "us-west-2"),
    ("AWS_ACCESS_KEY_ID", "nobody"),
    ("AWS_SECRET_ACCESS_KEY", "nothing"),
):
    os.environ.setdefault(variable, value)

NEEDED = {
    "all_zero": {"tensor_regex": ".*relu"},
    "unchanged_tensor": {"tensor_regex": ".*relu"},
    "tensor_variance": {"tensor_regex": ".*relu", "max_threshold": "10"},
}
"""Parameters without which a rule does nothing."""

MEMBERS = (
    "TrainingJobName",
    "DebugHookConfig",
    "DebugRuleConfigurations",
    "ProfilerConfig",
    "ProfilerRuleConfigurations",
)

DEBUGGER = [
    "all_zero",
    "check_input_images",
    "class_imbalance",
    "confusion",
    "create_xgboost_report",
    "dead_relu",
    "exploding_tensor",
    "feature_importance_overweight",
    "loss_not_decreasing",
    "nlp_sequence_ratio",
    "overfit",
    "overtraining",
    "poor_weight_initialization",
    "saturated_activation",
    "similar_across_runs",
    "stalled_training_rule",
    "tensor_variance",
    "tree_depth",
    "unchanged_tensor",
    "vanishing_gradient",
    "weight_update_ratio",
]

PROFILER = {
    "BatchSize": [(70, 60, 50, 500, 100, 30_000_000), {"patience": 10}],
    "CPUBottleneck": [(40, 20, 80, 10, 30_000_000), {"threshold": 12.5}],
    "Dataloader": [(60, 150, 30_000_000), {"max_threshold": 300}],
    "GPUMemoryIncrease": [(7, 20, 5, 30_000_000), {"increase": 9}],
    "IOBottleneck": [(40, 20, 80, 10, 30_000_000), {"io_threshold": 0}],
    "LoadBalancing": [(0.25, 20, 30_000_000), {"threshold": 1}],
    "LowGPUUtilization": [(90, 5, 100, 200, 30_000_000), {"threshold_p5": 2.5}],
    "MaxInitializationTime": [(10, 30_000_000), {"threshold": 5}],
    "OverallSystemUsage": [(30_000_000,), {"scan_interval_us": 10_000_000}],
    "StepOutlier": [(5, "TRAIN", 3, 30_000_000), {"mode": "EVAL"}, {"n_outliers": 2}],
    "ProfilerReport": [
        {"CPUBottleneck_threshold": 90},
        {"cpubottleneck_threshold": 20, "StepOutlier_mode": "TRAIN", "LOADBALANCING_threshold": 0.5},
    ],
}

ACTIONS = {
    "StopTraining()": lambda o: o.StopTraining(),
    "StopTraining(prefix)": lambda o: o.StopTraining("team-a"),
    "ActionList()": lambda o: o.ActionList(),
    "ActionList(StopTraining)": lambda o: o.ActionList(o.StopTraining()),
    "ActionList(Email)": lambda o: o.ActionList(o.Email("abc@example.com")),
    "ActionList(SMS)": lambda o: o.ActionList(o.SMS("+15550100")),
    "ActionList(all)": lambda o: o.ActionList(
        o.StopTraining(), o.StopTraining("team-b"), o.Email("abc@example.com"), o.SMS("+15550100")
    ),
    "Email": lambda o: o.Email("abc@example.com"),
    "SMS": lambda o: o.SMS("+15550100"),
}

MISTAKES = {
    "CPUBottleneck(threshold=200)": lambda o: o.CPUBottleneck(threshold=200),
    "CPUBottleneck(threshold=-1)": lambda o: o.CPUBottleneck(threshold=-1),
    "CPUBottleneck(threshold='30')": lambda o: o.CPUBottleneck(threshold="30"),
    "CPUBottleneck(threshold=None)": lambda o: o.CPUBottleneck(threshold=None),
    "CPUBottleneck(patience=0)": lambda o: o.CPUBottleneck(patience=0),
    "CPUBottleneck(patience='5')": lambda o: o.CPUBottleneck(patience="5"),
    "CPUBottleneck(patience=0.5)": lambda o: o.CPUBottleneck(patience=0.5),
    "CPUBottleneck(patience=True)": lambda o: o.CPUBottleneck(patience=True),
    "CPUBottleneck(unknown=1)": lambda o: o.CPUBottleneck(unknown=1),
    "OverallSystemUsage(1, 2)": lambda o: o.OverallSystemUsage(1, 2),
    "StepOutlier(mode=3)": lambda o: o.StepOutlier(mode=3),
    "StepOutlier(mode='SLEEP')": lambda o: o.StepOutlier(mode="SLEEP"),
    "MaxInitializationTime(threshold=0)": lambda o: o.MaxInitializationTime(threshold=0),
    "ProfilerReport(CPUBottleneckthreshold=30)": lambda o: o.ProfilerReport(CPUBottleneckthreshold=30),
    "ProfilerReport(BadRule_threshold=30)": lambda o: o.ProfilerReport(BadRule_threshold=30),
    "ProfilerReport(CPUBottleneck_bad=30)": lambda o: o.ProfilerReport(CPUBottleneck_bad=30),
    "ProfilerReport(CPUBottleneck_threshold=200)": lambda o: o.ProfilerReport(CPUBottleneck_threshold=200),
    "ProfilerReport(CPUBottleneck_threshold='30')": lambda o: o.ProfilerReport(CPUBottleneck_threshold="30"),
    "ProfilerReport(30)": lambda o: o.ProfilerReport(30),
    "ProfilerReport(two spellings)": lambda o: o.ProfilerReport(StepOutlier_stddev=4, stepoutlier_stddev=6),
    "StopTraining('a_b')": lambda o: o.StopTraining("a_b"),
    "StopTraining('')": lambda o: o.StopTraining(""),
    "StopTraining(5)": lambda o: o.StopTraining(5),
    "StopTraining(70 characters)": lambda o: o.StopTraining("a" * 70),
    "Email()": lambda o: o.Email(),
    "Email('nobody')": lambda o: o.Email("nobody"),
    "Email(None)": lambda o: o.Email(None),
    "Email(line break)": lambda o: o.Email("abc@example.com\n"),
    "SMS()": lambda o: o.SMS(),
    "SMS('5550100')": lambda o: o.SMS("5550100"),
    "SMS('+0')": lambda o: o.SMS("+0"),
    "ActionList('stop')": lambda o: o.ActionList("stop"),
    "ActionList(list)": lambda o: o.ActionList([o.StopTraining()]),
}
"""Calls that make no sense."""

COLLECTIONS = (
    "weights",
    "gradients",
    "losses",
    "input_image",
    "input_sequence",
    "relu_output",
    "relu_input",
    "no",
)


def classes(which):
    if which == "sdk2":
        from sagemaker.debugger import ProfilerRule, Rule
    else:
        from sagemaker.core.debugger.debugger import ProfilerRule, Rule
    return Rule, ProfilerRule


def debugger_request(rule, job="job-1"):
    rule.prepare_actions(job)
    return {
        "rule": rule.to_debugger_rule_config_dict(),
        "collections": sorted(
            (one._to_request_dict() for one in rule.collection_configs), key=lambda one: one["CollectionName"]
        ),
    }


def estimator_request(rules):
    """What SDK 2 would send to create a training job; nothing is sent."""
    import boto3
    from sagemaker.estimator import Estimator
    from sagemaker.session import Session

    class Client:
        def create_training_job(self, **request):
            self.request = request

    client = Client()
    session = Session(
        boto_session=boto3.Session(region_name="us-west-2"), default_bucket="bkt", sagemaker_client=client
    )
    role = "arn:aws:iam::111122223333:role/training"
    where = {"instance_count": 1, "instance_type": "ml.m5.xlarge", "output_path": "s3://bkt/out"}
    Estimator("image", role=role, sagemaker_session=session, rules=rules, **where).fit(
        job_name="job-1", wait=False
    )
    request = {name: client.request[name] for name in MEMBERS if name in client.request}
    collections = request.get("DebugHookConfig", {}).get("CollectionConfigurations", [])
    collections.sort(key=lambda one: one["CollectionName"])  # they come out of a set
    return request


def core_shapes(rules):
    """What users of sagemaker-core give to TrainingJob.create."""
    import re

    from sagemaker.core.shapes import DebugRuleConfiguration, ProfilerRuleConfiguration

    shapes = []
    for rule in rules:
        debug = hasattr(rule, "prepare_actions")
        if debug:
            rule.prepare_actions("job-1")
        entry = rule.to_debugger_rule_config_dict() if debug else rule.to_profiler_rule_config_dict()
        snake = {re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower(): value for key, value in entry.items()}
        shape = (DebugRuleConfiguration if debug else ProfilerRuleConfiguration)(**snake)
        shapes.append(shape.model_dump(exclude_unset=True))
    return shapes


def attempt(call):
    try:
        return call()
    except Exception as error:
        return {"error": type(error).__name__}


def mistake(call):
    """Names of the exception and its bases, as far as Python has them; empty if the call is taken."""
    try:
        call()
    except Exception as error:
        return [
            one.__name__ for one in type(error).__mro__ if one.__module__ == "builtins" and one is not object
        ]
    return []


def main(source, which, path):
    if source == "ours":
        from smdbg_core.sagemaker import rule_configs

        rule_configs.install()
    import smdebug_rulesconfig as configs
    from smdebug_rulesconfig.profiler_rules import rules as profiler

    Rule, ProfilerRule = classes(which)
    out = {"names": [name for name in dir(configs) if not name.startswith("_")], "cases": {}}
    cases = out["cases"]
    for name in DEBUGGER:
        factory = getattr(configs, name)
        cases[f"config {name}"] = factory()
        cases[f"rule {name}"] = attempt(lambda: debugger_request(Rule.sagemaker(factory())))
        cases[f"rule {name} renamed, with parameters"] = attempt(
            lambda: debugger_request(
                Rule.sagemaker(
                    factory(),
                    name="renamed",
                    container_local_output_path="/opt/x",
                    s3_output_path="s3://bucket/rules",
                    other_trials_s3_input_paths=["s3://bucket/t0", "s3://bucket/t1"],
                    rule_parameters={"threshold": "42", "tensor_regex": ".*"},
                    actions=configs.ActionList(configs.StopTraining()),
                )
            )
        )
    for action, make in ACTIONS.items():
        cases[f"action {action}"] = attempt(lambda: make(configs).serialize())
        cases[f"rule with {action}"] = attempt(
            lambda: debugger_request(Rule.sagemaker(configs.vanishing_gradient(), actions=make(configs)))
        )
    for name, calls in PROFILER.items():
        config_class = getattr(profiler, name)
        for arguments in ({}, *calls):
            make = lambda: (
                config_class(*arguments) if isinstance(arguments, tuple) else config_class(**arguments)
            )
            cases[f"config {name} {arguments}"] = attempt(lambda: vars(make()))
            cases[f"rule {name} {arguments}"] = attempt(
                lambda: ProfilerRule.sagemaker(make()).to_profiler_rule_config_dict()
            )
            cases[f"rule {name} {arguments} renamed"] = attempt(
                lambda: ProfilerRule.sagemaker(
                    make(), name="renamed", s3_output_path="s3://b/r"
                ).to_profiler_rule_config_dict()
            )
    for name in COLLECTIONS:
        cases[f"collection {name}"] = attempt(lambda: configs.get_collection(name))
    out["mistakes"] = {name: mistake(lambda: call(configs)) for name, call in MISTAKES.items()}
    build = estimator_request if which == "sdk2" else core_shapes
    actions = lambda: ACTIONS["ActionList(all)"](configs)
    jobs = {
        name: lambda name=name: [
            Rule.sagemaker(
                getattr(configs, name)(),
                rule_parameters=dict(NEEDED.get(name, {})),
                other_trials_s3_input_paths=["s3://b/t0", "s3://b/t1"]
                if name == "similar_across_runs"
                else None,
                actions=actions(),
            )
        ]
        for name in DEBUGGER
    }
    jobs |= {name: lambda name=name: [ProfilerRule.sagemaker(getattr(profiler, name)())] for name in PROFILER}
    jobs["several"] = lambda: [
        Rule.sagemaker(configs.create_xgboost_report()),
        ProfilerRule.sagemaker(configs.ProfilerReport()),
        Rule.sagemaker(configs.tree_depth(), actions=actions()),
    ]
    out[f"jobs of {which}"] = {name: attempt(lambda: build(make())) for name, make in jobs.items()}
    with open(path, "w") as file:  # SDKs print to the standard output
        json.dump(out, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
