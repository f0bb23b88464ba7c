# SPDX-License-Identifier: Apache-2.0
"""watchdog(): a thread in each rank that asks ddpdoctor when the rank stops moving.

It costs one look at the main thread's frame per second. Of the ranks of a machine one asks at a time; the others wait for its answer.
A thread that keeps the GIL for ever stops this thread too: another rank of the job, which waits for that one, asks then."""
import ctypes
import hashlib
import os
import socket
import sys
import threading
import time
from typing import Any, Callable, Optional

from ddpdoctor.diagnosis import NotObserved, diagnose
from ddpdoctor.installed import ProgramMissing, program
from ddpdoctor.report import Report

_PR_SET_PTRACER = 0x59616D61
_ANY_PROCESS = ctypes.c_ulong(-1)


def permit_observation() -> None:
    """Where Yama lets only ancestors look at a process (ptrace_scope 1): lets processes of this user look at this one. Else nothing."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope") as file:
            if file.read().strip() != "1":
                return
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PTRACER, _ANY_PROCESS, 0, 0, 0)
    except (OSError, AttributeError):
        pass


def _job() -> str:
    """The same for all ranks of a job on this machine: where they meet, else the process that started them."""
    address, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    met = f"{address}:{port}" if address and port else f"parent {os.getppid()}"
    return hashlib.sha256(met.encode(errors="surrogateescape")).hexdigest()[:16]


class _Turn:
    """Held by one process of a job on a machine; the kernel lets go of it when the process ends."""

    def __init__(self) -> None:
        self._socket: Optional[socket.socket] = None

    def take(self) -> bool:
        if self._socket is not None:
            return True
        one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            one.bind(f"\0ddpdoctor-watchdog-{os.getuid()}-{_job()}")
        except OSError:
            one.close()
            return False
        self._socket = one
        return True

    def give_back(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def print_report(report: Report) -> None:
    """The default of on_hang: the report as text, on stderr."""
    print(report.text, file=sys.stderr, flush=True)


class Watchdog:
    """A running watchdog; made by watchdog()."""

    def __init__(self, timeout: float, on_hang: Callable[[Report], Any], thread_id: int) -> None:
        self._timeout, self._on_hang, self._watched = timeout, on_hang, thread_id
        self._stop = threading.Event()
        self._beats = 0
        self._turn = _Turn()
        self.report: Optional[Report] = None  #: the newest report with a named cause
        self._thread = threading.Thread(target=self._run, name="ddpdoctor", daemon=True)
        self._thread.start()

    def beat(self) -> None:
        """The job moved. From the first call on, only calls of this count as progress."""
        self._beats += 1

    def stop(self) -> None:
        """Ends the watching."""
        self._stop.set()

    def __enter__(self) -> "Watchdog":
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def _progress(self) -> Any:
        """What changes when the rank moves: calls of beat(), else the place of the watched thread."""
        if self._beats:
            return self._beats
        frame = sys._current_frames().get(self._watched)
        return None if frame is None else (id(frame), frame.f_lasti)

    def _run(self) -> None:
        try:
            self._watch()
        finally:
            self._turn.give_back()

    def _watch(self) -> None:
        last, since, told = self._progress(), time.monotonic(), False
        while not self._stop.wait(min(1.0, self._timeout / 10)):
            now = self._progress()
            if now is None:  # the thread has ended
                return
            if now != last:
                self._turn.give_back()
                last, since, told = now, time.monotonic(), False
            elif not told and time.monotonic() - since >= self._timeout:
                if self._turn.take():
                    told = self._ask(last)
                since = time.monotonic()  # no cause yet: once more after as long a time

    def _look(self) -> Report:
        return diagnose(os.getpid())

    def _ask(self, last: Any) -> bool:
        """True when there is nothing more to be asked: a cause was named, or this process may not look."""
        try:
            report = self._look()
        except (NotObserved, ProgramMissing) as refused:
            print(f"ddpdoctor watchdog: {refused}", file=sys.stderr, flush=True)
            return True
        except Exception as error:  # noqa: BLE001 - whatever happens here, the job goes on
            print(f"ddpdoctor watchdog: {error}", file=sys.stderr, flush=True)
            return False
        if not report.named or self._progress() != last or self._stop.is_set():
            return False
        self.report = report
        try:
            self._on_hang(report)
        except Exception as error:  # noqa: BLE001
            print(f"ddpdoctor watchdog: on_hang raised {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return True


def watchdog(timeout: float = 300.0, on_hang: Optional[Callable[[Report], Any]] = None) -> Watchdog:
    """Starts to watch the thread that calls it, usually the main thread of a rank; call it on every rank.

    timeout   seconds in which the thread stays in one Python instruction (or in which beat() is not called, once it has been)
              before ddpdoctor looks at the job. A look takes about 0.1 s and stops no thread that sleeps.
    on_hang   called in the watchdog's thread, once per hang and machine, with a Report whose cause is certain or likely. Without it
              the report is printed on stderr. What it raises is printed; the job goes on. A job that moves is never reported.

    Raises ProgramMissing when the program is not installed, ValueError for a timeout that is not positive."""
    if not timeout > 0:
        raise ValueError(f"watchdog: timeout is {timeout}; it must be more than 0 seconds")
    program()
    permit_observation()
    return Watchdog(float(timeout), on_hang or print_report, threading.get_ident())
