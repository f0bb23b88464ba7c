# SPDX-License-Identifier: Apache-2.0
"""pytest --ddpdoctor[=SECONDS]: a distributed test that hangs fails with the report instead of a timeout.

A test is diagnosed after it has run for SECONDS (60), and again after each further SECONDS. If ddpdoctor finds a hang, the test fails with
the report, and the processes that the test started are ended. A test that makes progress is not ended, however long it takes."""
from __future__ import annotations  # old pytests lack some of the names

import ctypes
import os
import signal
import sys
import threading
import time
from typing import Any, Dict, Generator, List, Optional, Tuple

import pytest

from ddpdoctor.diagnosis import NotObserved, diagnose
from ddpdoctor.installed import ProgramMissing, program
from ddpdoctor.report import Report
from ddpdoctor.watch import permit_observation

_DEFAULT_SECONDS = 60.0
_PATIENCE = 5.0  # seconds within which a test that is to fail must return to Python
_WAKE = signal.SIGRTMIN + 3


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ddpdoctor")
    group.addoption("--ddpdoctor", nargs="?", type=float, const=_DEFAULT_SECONDS, default=None, metavar="SECONDS",
                    help="a test that hangs is diagnosed after SECONDS (60), and fails with the report")


def pytest_configure(config: pytest.Config) -> None:
    seconds = config.getoption("--ddpdoctor")
    if seconds is None or config.pluginmanager.hasplugin("ddpdoctor-watch"):
        return
    if not seconds > 0:
        raise pytest.UsageError(f"--ddpdoctor={seconds}: it must be more than 0 seconds")
    if hasattr(config, "workerinput") or getattr(config.option, "numprocesses", None) is None:
        # not in the controller of xdist, which runs no tests
        try:
            program()
        except ProgramMissing as missing:
            raise pytest.UsageError(str(missing)) from None
        permit_observation()
        config.pluginmanager.register(_Watch(seconds), "ddpdoctor-watch")


class _Watch:
    """Diagnoses each test from a thread of its own."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._look: Optional[_Look] = None

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, None]:
        self._look = _Look(item, self._seconds)
        try:
            yield
        finally:
            self._look.end()
            self._look = None

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: Any) -> Generator[None, Any, None]:
        outcome = yield
        look = self._look
        report = outcome.get_result()
        if look is None or look.report is None or not report.failed:
            return
        if look.report.text.splitlines()[0] not in str(report.longrepr):  # the test caught our exception, or failed earlier because of its children's end
            report.sections.append(("ddpdoctor", look.report.text))
        _shorten(report, look.report)
        report.user_properties.append(("ddpdoctor", look.report.findings[0].kind))


def _shorten(failed: Any, report: Report) -> None:
    """pytest repeats the message in its summary, in CI without a length limit: the cause in one line is enough there."""
    crash = getattr(failed.longrepr, "reprcrash", None)
    if crash is not None and report.text.strip() in crash.message:
        crash.message = f"the test hangs: {report.findings[0].summary}"


class _Look:
    """One test: a thread that diagnoses it until it has ended."""

    def __init__(self, item: pytest.Item, seconds: float) -> None:
        self._item, self._seconds = item, seconds
        self._main = threading.get_ident()
        self._ended = threading.Event()
        self._before = set(_children(os.getpid()))
        self._lock = threading.Lock()
        self._failing = False
        self._handler: Any = None
        self.report: Optional[Report] = None
        self._in_main = threading.current_thread() is threading.main_thread()
        if self._in_main:
            self._handler = signal.signal(_WAKE, self._raise)
        self._thread = threading.Thread(target=self._run, name="ddpdoctor", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """At the end of the test: removes what is ours and, if it failed because of us, ends its processes."""
        with self._lock:
            self._ended.set()
        self._thread.join(1.0)
        if self._in_main:
            signal.signal(_WAKE, self._handler if self._handler is not None else signal.SIG_DFL)
        if self.report is not None:
            _end([child for child in _children(os.getpid()) if child not in self._before])

    def _raise(self, *_: Any) -> None:
        """Runs in the main thread, when it has returned to Python."""
        if self._failing and self.report is not None:
            self._failing = False
            pytest.fail(f"the test hangs\n\n{self.report.text}", pytrace=False)

    def _run(self) -> None:
        while not self._ended.wait(self._seconds):
            try:
                report = diagnose(os.getpid())
            except (NotObserved, OSError, ValueError, RuntimeError):  # no job among this test's processes, or no permission
                continue
            except Exception:  # noqa: BLE001 - a look that failed changes no test
                continue
            if report.named:
                self._fail(report)
                return

    def _fail(self, report: Report) -> None:
        with self._lock:
            if self._ended.is_set():
                return
            self.report, self._failing = report, True
        if self._in_main:
            signal.pthread_kill(self._main, _WAKE)
        else:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._main), ctypes.py_object(KeyboardInterrupt))
        if self._ended.wait(_PATIENCE):
            return
        # The main thread is in a call that no signal interrupts: a collective, because this process is a rank itself.
        _end([child for child in _children(os.getpid()) if child not in self._before])
        if self._ended.wait(_PATIENCE):
            return
        self._say_and_exit(report)

    def _say_and_exit(self, report: Report) -> None:
        capture = self._item.config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.suspend_global_capture(in_=True)
        print(f"\n{self._item.nodeid}: the test hangs, in a call that cannot be interrupted; ddpdoctor ends this process\n\n{report.text}", file=sys.__stderr__, flush=True)
        os._exit(1)


Child = Tuple[int, str]  # pid and start time: pids are reused


def _stat(pid: int) -> List[str]:
    with open(f"/proc/{pid}/stat") as file:
        text = file.read()
    return text[text.rindex(")") + 2:].split()


def _children(root: int) -> List[Child]:
    """All descendants, the innermost last."""
    below: Dict[int, List[Child]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = _stat(int(name))
            except (OSError, ValueError):
                continue
            below.setdefault(int(fields[1]), []).append((int(name), fields[19]))
    found: List[Child] = []
    todo = [root]
    while todo:
        more = below.get(todo.pop(), [])
        found += more
        todo += [pid for pid, _ in more]
    return found


def _end(children: List[Child]) -> None:
    for pid, start in children:
        try:
            if _stat(pid)[19] == start:
                os.kill(pid, signal.SIGKILL)
        except (OSError, ValueError):
            pass
    deadline = time.monotonic() + 2.0
    while time.monotonic() < deadline and any(os.path.exists(f"/proc/{pid}/exe") and _alive(pid) for pid, _ in children):
        time.sleep(0.02)


def _alive(pid: int) -> bool:
    try:
        return _stat(pid)[0] not in "ZX"
    except (OSError, ValueError):
        return False
