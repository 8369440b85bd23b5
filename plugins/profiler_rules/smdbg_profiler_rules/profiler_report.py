"""ProfilerReport: every profiler rule at once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from smdbg_core import (
    Artifact,
    ConfigError,
    Finding,
    Measurements,
    Meta,
    ParameterError,
    ParameterProblem,
    Place,
    PluginError,
    ProfilerRule,
    Registry,
    Rule,
    RuleRun,
    ScanReads,
    ScanWindow,
    outcome_document,
)
from smdbg_profiler_rules.parameter_text import parameter_text

__all__ = ["ProfilerReport"]

_FOLDER = "profiler-output"


class ProfilerReport(ProfilerRule):
    """Runs every profiler rule that is installed and reports on all of them; fires when any of them does.

    Why it matters: one report on where time and hardware go is the way into all other profiler rules.
    What to do: begin with the rule that fired most often; its page says what helps.
    """

    scan_interval_us: Annotated[
        int,
        Meta(
            gt=0,
            unit="microseconds",
            local=True,
            description="Length of the scan windows of rules that are given none of their own.",
        ),
    ] = 60_000_000
    opt_out_telemetry: Annotated[
        bool, Meta(description="Accepted for compatibility; nothing is ever sent anywhere.")
    ] = False

    def reads(self) -> ScanReads:
        """Nothing: the other rules read."""
        return ScanReads(optional=True)

    def evaluate(self, window: ScanWindow) -> Iterator[Finding]:
        """Nothing to judge before the end."""
        yield from ()

    @classmethod
    def take_undeclared(cls, values: Mapping[str, Any]) -> tuple[dict[str, Any], list[ParameterProblem]]:
        """Parameters of other rules, as `<RuleName>_<parameter>` in any case.

        Values are checked by the declarations of the rule that they are for.
        """
        taken: dict[str, Any] = {}
        problems: list[ParameterProblem] = []
        by_rule: dict[type[Rule], tuple[str, dict[str, tuple[str, Any]]]] = {}
        registry = Registry.current() if values else None
        for key, value in values.items():
            prefix, underscore, parameter = _split(key)
            if registry is None or not (underscore and prefix and parameter):
                message = f"{key!r} does not follow <RuleName>_<parameter>, as in CPUBottleneck_threshold"
                problems.append(ParameterProblem(key, "unknown", message))
                continue
            try:
                loaded = registry.resolve(prefix, kinds=("profiler rule",))
            except (ConfigError, PluginError) as error:
                problems.append(ParameterProblem(key, "unknown", f"{key!r}: {error}"))
                continue
            if issubclass(loaded.object, cls):
                message = f"{key!r}: {prefix} is this report; give its parameters without the prefix"
                problems.append(ParameterProblem(key, "unknown", message))
                continue
            _, given = by_rule.setdefault(loaded.object, (loaded.spec.name, {}))
            known = loaded.object.find_parameter(parameter)
            name = known.name if known is not None else parameter
            if name in given:
                message = f"{given[name][0]!r} and {key!r} are one parameter: give it once"
                problems.append(ParameterProblem(key, "conflict", message))
            given.setdefault(name, (key, value))
        for rule_class, (rule, given) in by_rule.items():
            try:
                made = rule_class(**{name: value for name, (_, value) in given.items()})
            except ParameterError as error:
                problems += [_prefixed(problem, given, rule) for problem in error.problems]
            else:
                taken |= {f"{rule}_{name}": made.parameters[name] for name in given}
        return taken, problems

    def children(self) -> tuple[Rule, ...]:
        """One of each installed profiler rule, with the parameters that were given for it."""
        registry = Registry.current()
        made = []
        for spec in registry.profiler_rules():
            try:
                rule_class = registry.resolve(spec.qualified).object
            except PluginError:
                continue  # named among the warnings of the registry
            if issubclass(rule_class, ProfilerReport):
                continue
            prefix = f"{spec.name}_"
            own = {
                name.removeprefix(prefix): value
                for name, value in self._undeclared.items()
                if name.startswith(prefix)
            }
            made.append(rule_class(**{"scan_interval_us": self.scan_interval_us} | own))
        return tuple(made)

    def start(self, run: RuleRun) -> None:
        """Nothing yet."""
        self._fired = 0
        self._judged = 0

    def finish(self, run: RuleRun) -> Iterator[Finding | Artifact]:
        """Write what every rule measured and found; fire once for each rule that did."""
        for name, outcome in run.outcomes.items():
            measured = outcome.measurements or Measurements()
            if outcome.status in ("fired", "clean"):
                self._judged += 1
                place = Place(name, None, None, {})
                if outcome.status == "fired":
                    times = max(measured.triggered, 1)
                    message = f"fired {times} times, with {measured.violations} violations"
                    self._fired += 1
                    yield from self.judge(place, "times fired", times, ">", 0, message=message)
                else:
                    self.observe(place)
            content = json.dumps(_report(measured), allow_nan=False)
            yield Artifact(
                path=f"{_FOLDER}/profiler-reports/{outcome.rule}.json",
                content=content.encode(),
                media_type="application/json",
            )
        if not self._judged:
            self.skip(None, "no profiler rule could judge anything")
        findings = {
            "schema_version": 1,
            "outcomes": [outcome_document(outcome) for outcome in run.outcomes.values()],
        }
        yield Artifact(
            path=f"{_FOLDER}/profiler-reports/smdbg-findings.json",
            content=json.dumps(findings, allow_nan=False).encode(),
            media_type="application/json",
        )

    def measurements(self) -> Measurements:
        """How many rules fired, of how many."""
        return Measurements(triggered=self._fired, violations=self._fired, datapoints=self._judged)


def _report(measured: Measurements) -> dict[str, Any]:
    """The five keys of the service's report files, in its order."""
    known = {name: value for name, value in measured.parameters.items() if name != "scan_interval_us"}
    return {
        "RuleTriggered": measured.triggered,
        "Violations": measured.violations,
        "Details": measured.details,
        "Datapoints": measured.datapoints,
        "RuleParameters": parameter_text(known),
    }


def _split(key: str) -> tuple[str, str, str]:
    """Rule and parameter: at the first underscore, after the bracket of a qualified name."""
    bracket = key.find("]") + 1
    name, underscore, parameter = key[bracket:].partition("_")
    return key[:bracket] + name, underscore, parameter.lower()


def _prefixed(problem: ParameterProblem, given: Mapping[str, tuple[str, Any]], rule: str) -> ParameterProblem:
    """A problem of another rule, said of the key that was given here."""
    key = given[problem.parameter][0] if problem.parameter in given else f"{rule}_{problem.parameter}"
    return problem._replace(parameter=key, message=f"{rule}: {problem.message}")
