# SPDX-License-Identifier: Apache-2.0
"""watchdog(): a thread in each rank that runs ddpdoctor when the rank stops moving.

It reads the main thread's frame once per second. Of the ranks of a machine, one at a time runs ddpdoctor; the others wait for its result. A
thread that holds the GIL forever stops this thread, too; then another rank of the job, which waits for that one, runs ddpdoctor."""
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
    """If Yama lets only ancestors read a process (ptrace_scope 1): allows processes of this user to read this one. Otherwise does nothing."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope") as file:
            if file.read().strip() != "1":
                return
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PTRACER, _ANY_PROCESS, 0, 0, 0)
    except (OSError, AttributeError):
        pass


def _job() -> str:
    """A key that is the same for all ranks of a job on this machine: the rendezvous address, else the process that started them."""
    address, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    met = f"{address}:{port}" if address and port else f"parent {os.getppid()}"
    return hashlib.sha256(met.encode(errors="surrogateescape")).hexdigest()[:16]


class _Turn:
    """Held by one process of a job on a machine; the kernel releases it when the process ends."""

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
    """The default of on_hang: prints the report as text on stderr."""
    print(report.text, file=sys.stderr, flush=True)


class Watchdog:
    """A running watchdog, returned by watchdog()."""

    def __init__(self, timeout: float, on_hang: Callable[[Report], Any], thread_id: int) -> None:
        self._timeout, self._on_hang, self._watched = timeout, on_hang, thread_id
        self._stop = threading.Event()
        self._beats = 0
        self._turn = _Turn()
        self.report: Optional[Report] = None  #: the newest report with a named cause
        self._thread = threading.Thread(target=self._run, name="ddpdoctor", daemon=True)
        self._thread.start()

    def beat(self) -> None:
        """Reports progress. After the first call, only further calls count as progress."""
        self._beats += 1

    def stop(self) -> None:
        """Stops the watchdog."""
        self._stop.set()

    def __enter__(self) -> "Watchdog":
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def _progress(self) -> Any:
        """A value that changes when the rank moves: the number of calls of beat(), else the position of the watched thread."""
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
                since = time.monotonic()  # no cause yet: again after the same time

    def _look(self) -> Report:
        return diagnose(os.getpid())

    def _ask(self, last: Any) -> bool:
        """True if ddpdoctor need not run again: a cause was named, or this process may not read the job."""
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

    timeout   seconds for which the thread stays at one Python instruction (or in which beat() is not called, after its first call) before
              ddpdoctor diagnoses the job. A diagnosis takes about 0.1 s and stops no sleeping thread.
    on_hang   called in the watchdog's thread, once per hang and machine, with a Report whose cause is certain or likely. Without it the
              report is printed on stderr. An exception of it is printed; the job continues. A job that makes progress is never reported.

    Raises ProgramMissing if the program is not installed, ValueError for a timeout that is not positive."""
    if not timeout > 0:
        raise ValueError(f"watchdog: timeout is {timeout}; it must be more than 0 seconds")
    program()
    permit_observation()
    return Watchdog(float(timeout), on_hang or print_report, threading.get_ident())
