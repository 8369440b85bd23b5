"""Running a command under capture: exit status, signals, markers."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from smdbg_core import open_run
from smdbg_core.capture import Command

CAPTURE = [str(Path(sys.executable).with_name("smdbg")), "capture", "--interval", "0.1"]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def start(folder: Path, script: str, **options: object) -> subprocess.Popen[str]:
    """A command under capture, once the command says that it is ready; without a terminal."""
    process = subprocess.Popen(
        [*CAPTURE, "--output", str(folder), "--", sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,  # type: ignore[call-overload]
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def ended(folder: Path) -> bool:
    profiler = open_run(str(folder)).profiler
    assert profiler is not None
    return profiler.ended


@pytest.mark.parametrize("status", [0, 1, 7, 255])
def test_the_exit_status_is_the_commands(tmp_path: Path, status: int) -> None:
    done = subprocess.run([*CAPTURE, "--output", str(tmp_path), "--", "sh", "-c", f"exit {status}"])
    assert done.returncode == status
    assert ended(tmp_path)


def test_options_after_the_command_are_the_commands(tmp_path: Path) -> None:
    done = subprocess.run(
        [*CAPTURE, "--output", str(tmp_path), "echo", "--output", "-n", "--", "x"], capture_output=True
    )
    assert done.stdout == b"--output -n -- x\n"


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"])
def test_a_signal_reaches_a_command_that_handles_it(tmp_path: Path, name: str) -> None:
    process = start(
        tmp_path,
        "import signal, sys, time\n"
        f"signal.signal(signal.{name}, lambda *a: sys.exit(5))\n"
        "print('ready', flush=True)\ntime.sleep(60)",
    )
    process.send_signal(getattr(signal, name))
    assert process.wait(20) == 5
    process.communicate()
    assert ended(tmp_path)


def test_a_command_that_a_signal_ends_gives_128_and_its_number(tmp_path: Path) -> None:
    process = start(tmp_path, "import time\nprint('ready', flush=True)\ntime.sleep(60)")
    process.terminate()
    assert process.wait(20) == 128 + signal.SIGTERM
    process.communicate()
    assert ended(tmp_path)


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    process = start(
        tmp_path,
        "import time\nprint('ready', flush=True)\ntime.sleep(1)",
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    process.send_signal(signal.SIGHUP)
    assert process.wait(20) == 0
    process.communicate()


def test_a_crash_leaves_readable_files_and_no_marker(tmp_path: Path) -> None:
    process = start(tmp_path, "import os, time\nprint(f'ready', flush=True)\ntime.sleep(1.5)")
    time.sleep(1)
    process.kill()
    process.communicate()
    profiler = open_run(str(tmp_path)).profiler
    assert profiler is not None
    assert not profiler.ended
    assert sum(1 for _ in profiler.reader()) > 1
    assert profiler.damage == []


def test_what_cannot_run_has_the_status_of_shells(tmp_path: Path) -> None:
    with Command(["/no/such/command"], os.environ) as command:
        assert command.run() == (127, "/no/such/command: command not found")
    with Command([str(tmp_path)], os.environ) as command:
        assert command.run() == (126, f"{tmp_path}: Permission denied")


def test_signals_around_the_command_do_no_harm() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Command(["sleep", "30"], os.environ) as command:
        os.kill(os.getpid(), signal.SIGTERM)
        assert command.run() == (128 + signal.SIGTERM, None)
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_key_on_the_terminal_interrupts_once(tmp_path: Path) -> None:
    script = (
        "import signal, time\nnumber = 0\n"
        "def count(*a):\n    global number\n    number += 1\n"
        "signal.signal(signal.SIGINT, count)\nprint('ready', flush=True)\n"
        "end = time.time() + 1.5\nwhile time.time() < end: time.sleep(0.1)\n"
        "print('signals', number, flush=True)"
    )
    child, terminal = pty.fork()
    if child == 0:
        os.execv(CAPTURE[0], [*CAPTURE, "--output", str(tmp_path), "--", sys.executable, "-c", script])
    seen = b""
    with suppress(OSError):  # the terminal's end
        while chunk := os.read(terminal, 1000):
            seen += chunk
            if seen.endswith(b"ready\r\n"):
                os.write(terminal, b"\x03")
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert b"signals 1\r\n" in seen
    assert ended(tmp_path)


def test_a_folder_that_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where the folder would be")
    script = "import time; time.sleep(0.6); raise SystemExit(4)"
    done = subprocess.run(
        [*CAPTURE, "--output", str(blocked / "x"), "--", sys.executable, "-c", script],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 4
    assert done.stderr.count("cannot be written") == 1


def test_the_command_knows_where_the_output_is(tmp_path: Path) -> None:
    script = "import os; print(os.environ['SMDBG_PROFILER_OUTPUT'])"
    done = subprocess.run(
        [*CAPTURE, "--output", "out", "--", sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == str(tmp_path / "out")
