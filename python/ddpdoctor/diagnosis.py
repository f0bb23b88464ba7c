# SPDX-License-Identifier: Apache-2.0
"""diagnose(): runs the program on a running job or on files, and returns its answer as a Report."""
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Iterable, List, Union

from ddpdoctor.installed import program
from ddpdoctor.report import Report

Source = Union[str, "os.PathLike[str]"]


class NotObserved(RuntimeError):
    """ddpdoctor could not read the job; the text says why and what would help. `status` is its exit status (2 usage, 3 not observed)."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


def diagnose(what: Union[int, Source, Iterable[Source]], *, timeout: float = 120.0, samples: int = 0, interval: float = 0.0,
             values: bool = True, outputs: Iterable[Source] = ()) -> Report:
    """Diagnoses a job: what hangs, and why.

    what      the pid of any process of a running job, or a path, or several: recordings, captures, flight-recorder dumps, stack dumps,
              logs, or folders of them.
    timeout   seconds after which the diagnosis is aborted.
    samples, interval  number of snapshots of a running job, and the seconds between two; 0: the program's choice.
    values    False: no variable of the job is read.
    outputs   files to write as well; the extension selects the format: .html .json .md .ddpd .sarif .xml and more.

    Raises NotObserved (no such process, no permission, nothing readable), ProgramMissing, subprocess.TimeoutExpired."""
    with tempfile.TemporaryDirectory(prefix="ddpdoctor-") as folder:
        target = Path(folder, "report.json")
        files = [word for output in (target, *outputs) for word in ("-o", os.path.abspath(os.fspath(output)))]
        done = subprocess.run([program(), *_words(what, samples, interval, values), *files], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, env={**os.environ, "NO_COLOR": "1"})
        if done.returncode not in (0, 1) or not target.is_file():
            raise NotObserved(done.stderr.decode(errors="replace").strip() or f"ddpdoctor exited with {done.returncode}", done.returncode)
        return Report.from_json(json.loads(target.read_text()), done.stdout.decode(errors="replace"))


def _words(what: Union[int, Source, Iterable[Source]], samples: int, interval: float, values: bool) -> List[str]:
    if isinstance(what, int):
        more = ["--samples", str(samples)] if samples > 0 else []
        more += ["--interval", str(interval)] if interval > 0 else []
        return ["attach", str(what), *more, *([] if values else ["--no-values"])]
    paths = [what] if isinstance(what, (str, os.PathLike)) else list(what)
    if not paths:
        raise ValueError("diagnose: no file was given")
    return ["report", *(os.path.abspath(os.fspath(path)) for path in paths)]
