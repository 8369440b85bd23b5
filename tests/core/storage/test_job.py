"""`smdbg sagemaker job`: a job described by a stand-in, its data on S3."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdbg_core.cli.main import main
from tests.builders import write_trial
from tests.core.storage.conftest import Proxy


class Service:
    """Answers DescribeTrainingJob."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.denied = False
        self.asked: list[str] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.asked.append(self.headers["X-Amz-Target"])
                status, answer = service.answer(body["TrainingJobName"])
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/x-amz-json-1.1")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, name: str) -> tuple[int, dict[str, Any]]:
        if self.denied:
            return 400, {"__type": "AccessDeniedException", "message": "no"}
        if name not in self.jobs:
            return 400, {"__type": "ValidationException", "message": "Requested resource not found."}
        return 200, self.jobs[name]


@pytest.fixture
def service(s3: Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    made = Service()
    monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER", f"http://127.0.0.1:{made.server.server_port}")
    yield made
    made.server.shutdown()
    made.server.server_close()


def rule(name: str, invoked: str, **parameters: str) -> dict[str, Any]:
    return {
        "RuleConfigurationName": name,
        "RuleEvaluatorImage": "example",
        "RuleParameters": {"rule_to_invoke": invoked, **parameters},
    }


def status(name: str, said: str) -> dict[str, Any]:
    return {"RuleConfigurationName": name, "RuleEvaluationStatus": said}


@pytest.fixture
def job(service: Service, upload: Callable[[Path, str], str], tmp_path: Path) -> str:
    """A job whose gradients vanish."""
    steps = {n: {"gradient/a": np.array([1e-9]), "loss": np.array(1.0 / (n + 1))} for n in range(4)}
    write_trial(tmp_path / "job-1" / "debug-output", steps, mode="TRAIN")
    upload(tmp_path / "job-1", "out/job-1")
    service.jobs["job-1"] = {
        "TrainingJobName": "job-1",
        "TrainingJobStatus": "Completed",
        "DebugHookConfig": {"S3OutputPath": "s3://runs/out"},
        "DebugRuleConfigurations": [
            rule("strict", "VanishingGradient", threshold="1e-6"),
            rule("lenient", "VanishingGradient", threshold="1e-12"),
            rule("Exploding", "ExplodingTensor"),
        ],
        "DebugRuleEvaluationStatuses": [
            status("strict", "IssuesFound"),
            status("lenient", "IssuesFound"),
            status("Exploding", "InProgress"),
        ],
    }
    return "job-1"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as done:
        main(["sagemaker", "job", *arguments])
    said = capsys.readouterr()
    return int(done.value.code or 0), said.out, said.err


def test_its_own_rules_judge_it_beside_the_service(
    service: Service, job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, job)
    assert code == 1
    assert "strict     IssuesFound     here: fired; same" in out
    assert "lenient    IssuesFound     here: clean; DIFFERS" in out
    assert "Exploding  InProgress      here: clean; not comparable" in out
    assert service.asked == ["SageMaker.DescribeTrainingJob"]
    code, out, _ = run(capsys, job, "--format", "json")
    document = json.loads(out)
    assert [one["agrees"] for one in document["comparison"]] == [True, False, None]
    assert document["report"]["run"]["uri"] == "s3://runs/out/job-1"


def test_a_local_copy_will_do(
    service: Service, job: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, job, "--path", str(tmp_path / "job-1"))
    assert code == 1
    assert "here: fired; same" in out


def test_what_cannot_be_asked_for_is_one_line(
    service: Service, job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "job-2")[::2] == (
        3,
        "smdbg: job-2: DescribeTrainingJob: there is no such training job in this region\n",
    )
    service.denied = True
    code, _, err = run(capsys, job)
    assert (code, "the caller needs sagemaker:DescribeTrainingJob" in err, err.count("\n")) == (3, True, 1)
    code, _, err = run(capsys, "not a name!")
    assert code in (2, 3)
    assert err.count("\n") == 1


def test_a_job_that_says_too_little(service: Service, job: str, capsys: pytest.CaptureFixture[str]) -> None:
    service.jobs[job]["DebugHookConfig"] = {"S3OutputPath": "s3://runs/empty"}
    code, _, err = run(capsys, job)
    assert (code, "there is no object below this prefix" in err) == (3, True)
    del service.jobs[job]["DebugHookConfig"]
    code, _, err = run(capsys, job)
    assert (code, "give --path" in err) == (2, True)
