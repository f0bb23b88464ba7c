# SPDX-License-Identifier: Apache-2.0
"""StepWatch: a watchdog that counts training steps and writes its report into a folder. Loads no framework."""
import os
import shutil
import socket
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, Callable, Optional, Union

from ddpdoctor.diagnosis import diagnose
from ddpdoctor.installed import program
from ddpdoctor.report import Report
from ddpdoctor.watch import Watchdog, permit_observation, print_report

OnHang = Callable[[Report, Path], Any]
_PATIENCE = 5.0  # seconds by which the other ranks of a machine wait longer than its first one, whose log folder is the job's
_FILES = ("report.html", "report.md", "job.ddpd")


def checked(timeout: float) -> float:
    if not timeout > 0:
        raise ValueError(f"timeout is {timeout}; it must be more than 0 seconds")
    program()
    return float(timeout)


class StepWatch(Watchdog):
    """Watches from its construction until stop(); call beat() after each step. The report is written to FOLDER/ddpdoctor/HOST-1, HOST-2 and
    so on.

    timeout   seconds without a finished step before ddpdoctor diagnoses the job. A job that makes progress is never reported.
    folder    where the framework keeps its logs; made when there is a report.
    local_rank  the first rank of a machine diagnoses first, another one if the first cannot.
    on_hang   called as on_hang(report, folder of the report) in the watchdog's thread; without it the report is printed on stderr."""

    def __init__(self, timeout: float, folder: Union[str, "os.PathLike[str]"], local_rank: int = 0, on_hang: Optional[OnHang] = None) -> None:
        timeout = checked(timeout)
        self.folder = Path(folder).absolute()
        self._told = on_hang
        self._files: Optional["tempfile.TemporaryDirectory[str]"] = None  # of the newest diagnosis
        permit_observation()
        super().__init__(timeout + (min(_PATIENCE, timeout) if local_rank else 0.0), self._save_and_tell, threading.get_ident())

    def _look(self) -> Report:
        if self._files is not None:
            self._files.cleanup()
        self._files = tempfile.TemporaryDirectory(prefix="ddpdoctor-")
        try:
            return diagnose(os.getpid(), outputs=[Path(self._files.name, name) for name in ("report.json", *_FILES)])
        except BaseException:
            self._files.cleanup()
            raise

    def _save_and_tell(self, report: Report) -> None:
        assert self._files is not None
        try:
            kept = self._save(Path(self._files.name))
        except OSError as error:
            kept = None
            print(f"ddpdoctor: the report of the hang could not be written: {error}", file=sys.stderr, flush=True)
        finally:
            self._files.cleanup()
        if self._told is not None and kept is not None:
            self._told(report, kept)
            return
        print_report(report)
        if kept is not None:
            print(f"ddpdoctor: the report and its recording are in {kept}", file=sys.stderr, flush=True)

    def _save(self, files: Path) -> Path:
        """Makes a new folder for each report: mkdir is atomic on a folder that several machines share."""
        above = self.folder / "ddpdoctor"
        above.mkdir(parents=True, exist_ok=True)
        host = "".join(letter if letter.isalnum() or letter in "-." else "-" for letter in socket.gethostname()).lstrip(".") or "host"
        for number in range(1, 10000):
            kept = above / f"{host}-{number}"
            try:
                kept.mkdir()
            except FileExistsError:
                continue
            for file in sorted(files.iterdir()):
                shutil.copyfile(file, kept / file.name)
            return kept
        raise OSError(f"{above} has 9,999 reports")


class OptimizerSteps:
    """Calls beat() after each step of any torch optimizer of this process, from its construction until remove()."""

    def __init__(self, beat: Callable[[], None]) -> None:
        self._handle: Any = None
        try:
            from torch.optim.optimizer import register_optimizer_step_post_hook
        except ImportError:  # torch older than 2.0: only the caller's own beat() counts
            return
        self._handle = register_optimizer_step_post_hook(lambda *_: beat())

    def remove(self) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None


class OptimizerWatch(StepWatch):
    """A StepWatch whose steps are those of the torch optimizers of this process; beat() counts, too."""

    def __init__(self, timeout: float, folder: Union[str, "os.PathLike[str]"], local_rank: int = 0, on_hang: Optional[OnHang] = None) -> None:
        super().__init__(timeout, folder, local_rank, on_hang)
        self._steps = OptimizerSteps(self.beat)

    def stop(self) -> None:
        self._steps.remove()
        super().stop()
