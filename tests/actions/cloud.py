"""A stand-in for SageMaker and SNS: loopback HTTP, as boto3 speaks it, with faults on demand.

It keeps what is awkward about the services: pages are cut before they are filtered by status, names
are searched without regard to case, e-mail subscriptions wait for confirmation.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

__all__ = ["Cloud", "Refusal", "serve", "serve_cloud"]

ACCOUNT = "123456789012"


class Refusal(Exception):
    """An answer that is an error."""

    def __init__(self, code: str, message: str = "", status: int = 400) -> None:
        self.code, self.message, self.status = code, message, status


class Lost(Exception):
    """The call takes effect, and the connection is closed without an answer."""


class Cloud:
    """The state of the stand-in, and what was called.

    Attributes:
        calls: Operation and arguments, in order.
        faults: By operation, what the next calls meet: an exception each, `None` for none.
        denied: Operations without permission.
    """

    def __init__(self) -> None:
        self.url = ""
        self.region = "eu-west-1"
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.faults: dict[str, list[Exception | None]] = {}
        self.denied: set[str] = set()
        self.jobs: dict[str, str] = {}
        self.stopped_at: dict[str, float] = {}
        self.page_size = 100
        self.stubborn: set[str] = set()
        self.before: dict[str, Callable[[], None]] = {}
        self.subscriptions: list[dict[str, Any]] = []
        self.published: list[dict[str, Any]] = []
        self.confirmed_at_once = False
        self.opted_out: set[str] = set()

    def variables(self) -> dict[str, str]:
        """The environment in which boto3 reaches the stand-in, and nothing of this machine's."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "not-a-secret",
            "AWS_DEFAULT_REGION": self.region,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "no_proxy": "127.0.0.1,localhost",
        }

    def operations(self) -> list[str]:
        return [name for name, _ in self.calls]

    def arguments(self, operation: str) -> list[dict[str, Any]]:
        return [given for name, given in self.calls if name == operation]

    def answer(self, operation: str, given: dict[str, Any]) -> Any:
        self.calls.append((operation, given))
        if operation in self.denied:
            raise Refusal("AccessDeniedException", f"not authorized to perform: {operation}")
        self.before.pop(operation, lambda: None)()
        queue = self.faults.get(operation)
        fault = queue.pop(0) if queue else None
        if isinstance(fault, Refusal):
            raise fault
        result = getattr(self, operation)(given)
        if fault is not None:
            raise fault
        return result

    def ListTrainingJobs(self, given: dict[str, Any]) -> Any:
        begin = int(given.get("NextToken", "0"))
        names = sorted(name for name in self.jobs if given["NameContains"].lower() in name.lower())
        page = names[begin : begin + self.page_size]
        since = given.get("LastModifiedTimeAfter", 0)
        shown = [
            {
                "TrainingJobName": n,
                "TrainingJobArn": f"arn:x:{n}",
                "CreationTime": 1.0,
                "TrainingJobStatus": self.jobs[n],
            }
            for n in page
            if self.jobs[n] == given["StatusEquals"] and self.stopped_at.get(n, time.time()) >= since
        ]
        more = begin + self.page_size < len(names)
        return {"TrainingJobSummaries": shown, **({"NextToken": str(begin + self.page_size)} if more else {})}

    def StopTrainingJob(self, given: dict[str, Any]) -> Any:
        name = given["TrainingJobName"]
        if self.jobs.get(name) != "InProgress":
            raise Refusal(
                "ValidationException", f"rejected because the training job is in status {self.jobs.get(name)}"
            )
        if name not in self.stubborn:
            self.jobs[name] = "Stopping"
        return {}

    def DescribeTrainingJob(self, given: dict[str, Any]) -> Any:
        name = given["TrainingJobName"]
        return {"TrainingJobName": name, "TrainingJobStatus": self.jobs[name]}

    def CreateTopic(self, given: dict[str, Any]) -> Any:
        return {"TopicArn": f"arn:aws:sns:{self.region}:{ACCOUNT}:{given['Name']}"}

    def ListSubscriptionsByTopic(self, given: dict[str, Any]) -> Any:
        begin = int(given.get("NextToken", "0"))
        mine = [one for one in self.subscriptions if one["TopicArn"] == given["TopicArn"]]
        page = mine[begin : begin + self.page_size]
        keys = ("SubscriptionArn", "Owner", "Protocol", "Endpoint", "TopicArn")
        more = begin + self.page_size < len(mine)
        token = {"NextToken": str(begin + self.page_size)} if more else {}
        return {"Subscriptions": [{key: one[key] for key in keys} for one in page], **token}

    def subscribe(
        self, endpoint: str, policy: str | None, topic: str = "SMDebugRules", **changes: Any
    ) -> None:
        """A subscription that is there beforehand."""
        self.subscriptions.append(
            {
                "SubscriptionArn": f"arn:aws:sns:{self.region}:{ACCOUNT}:{topic}:{len(self.subscriptions)}",
                "Owner": ACCOUNT,
                "Protocol": "sms" if endpoint.startswith("+") else "email",
                "Endpoint": endpoint,
                "TopicArn": f"arn:aws:sns:{self.region}:{ACCOUNT}:{topic}",
                "FilterPolicy": policy,
                **changes,
            }
        )

    def Subscribe(self, given: dict[str, Any]) -> Any:
        policy = next(v for k, v in given.items() if k.endswith(".value"))
        known = [s for s in self.subscriptions if s["Endpoint"] == given["Endpoint"]]
        if known and known[0]["FilterPolicy"] != policy:
            raise Refusal("InvalidParameter", "Subscription already exists with different attributes")
        self.subscribe(given["Endpoint"], policy, given["TopicArn"].rpartition(":")[2])
        if given["Protocol"] == "email" and not self.confirmed_at_once:
            self.subscriptions[-1]["SubscriptionArn"] = "PendingConfirmation"
            return {"SubscriptionArn": "pending confirmation"}
        return {"SubscriptionArn": self.subscriptions[-1]["SubscriptionArn"]}

    def _subscription(self, given: dict[str, Any]) -> dict[str, Any]:
        return next(one for one in self.subscriptions if one["SubscriptionArn"] == given["SubscriptionArn"])

    def GetSubscriptionAttributes(self, given: dict[str, Any]) -> Any:
        one = self._subscription(given)
        names = ("FilterPolicy", "FilterPolicyScope")
        return {"Attributes": {"entry": [{"key": n, "value": one[n]} for n in names if one.get(n)]}}

    def SetSubscriptionAttributes(self, given: dict[str, Any]) -> Any:
        self._subscription(given)[given["AttributeName"]] = given["AttributeValue"]
        return {}

    def CheckIfPhoneNumberIsOptedOut(self, given: dict[str, Any]) -> Any:
        return {"isOptedOut": "true" if given["phoneNumber"] in self.opted_out else "false"}

    def Publish(self, given: dict[str, Any]) -> Any:
        self.published.append(given)
        return {"MessageId": f"m-{len(self.published)}"}


def _xml(value: Any) -> str:
    if isinstance(value, dict):
        return "".join(
            "".join(f"<{key}>{_xml(one)}</{key}>" for one in item)
            if isinstance(item, list) and key == "entry"
            else f"<{key}>{_xml(item)}</{key}>"
            for key, item in value.items()
        )
    if isinstance(value, list):
        return "".join(f"<member>{_xml(item)}</member>" for item in value)
    return escape(str(value))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cloud: Cloud

    def log_message(self, *_: object) -> None: ...

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        target = self.headers.get("X-Amz-Target", "")
        if target.startswith("SageMaker."):
            operation, given = target.partition(".")[2], json.loads(body)
        else:
            form = dict(parse_qsl(body.decode()))
            operation = form.pop("Action")
            form.pop("Version")
            given = form
        try:
            self._reply(200, operation, self.cloud.answer(operation, given), bool(target))
        except Refusal as refusal:
            self._refuse(refusal, bool(target))
        except Lost:
            self.close_connection = True
            self.connection.close()

    def _reply(self, status: int, operation: str, result: Any, as_json: bool) -> None:
        if as_json:
            self._send(status, json.dumps(result), "application/x-amz-json-1.1")
            return
        inner = f"<{operation}Result>{_xml(result)}</{operation}Result>"
        text = (
            f'<{operation}Response xmlns="http://sns.amazonaws.com/doc/2010-03-31/">{inner}'
            f"<ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></{operation}Response>"
        )
        self._send(status, text, "text/xml")

    def _refuse(self, refusal: Refusal, as_json: bool) -> None:
        if as_json:
            text = json.dumps({"__type": refusal.code, "message": refusal.message})
            self._send(refusal.status, text, "application/x-amz-json-1.1")
            return
        error = _xml({"Type": "Sender", "Code": refusal.code, "Message": refusal.message})
        self._send(refusal.status, f"<ErrorResponse><Error>{error}</Error></ErrorResponse>", "text/xml")

    def _send(self, status: int, text: str, kind: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None: ...


@contextmanager
def serve(handler: type[BaseHTTPRequestHandler], **attributes: Any) -> Iterator[str]:
    """A server on a free port of the loopback; its URL."""
    server = _Server(("127.0.0.1", 0), type("Handler", (handler,), attributes))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def serve_cloud() -> Iterator[Cloud]:
    """A running stand-in."""
    cloud = Cloud()
    with serve(_Handler, cloud=cloud) as cloud.url:
        yield cloud
