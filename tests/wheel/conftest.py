# SPDX-License-Identifier: Apache-2.0
"""The wheel in an empty environment. $DDPDOCTOR_WHEEL is the file; without it, the newest in dist/ (`./dev wheel`)."""
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/zoo"))


@pytest.fixture(scope="session")
def wheel():
    told = os.environ.get("DDPDOCTOR_WHEEL")
    found = [Path(told)] if told else sorted((ROOT / "dist").glob("ddpdoctor-*.whl"), key=lambda file: file.stat().st_mtime)
    if not found:
        pytest.skip("no wheel: ./dev wheel")
    return found[-1].resolve()


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory):
    """An environment with only the wheel; `seconds` is the time that pip took."""
    folder = tmp_path_factory.mktemp("empty") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    began = time.monotonic()
    subprocess.run([str(folder / "bin/pip"), "install", "-q", "--no-index", "--disable-pip-version-check", str(wheel)], check=True, env=bare())
    Installed.seconds = time.monotonic() - began
    return Installed(folder)


def bare():
    """The environment without variables that would select another ddpdoctor."""
    return {name: value for name, value in os.environ.items() if name not in ("DDPDOCTOR", "PYTHONPATH")}


class Installed:
    seconds = 0.0

    def __init__(self, folder):
        self.folder = folder
        self.program = folder / "bin" / "ddpdoctor"
        self.python = folder / "bin" / "python"

    def libraries(self):
        return sorted((self.folder / "libexec" / "ddpdoctor").glob("*.so"))

    def run(self, *words, limit=120, **more):
        return subprocess.run([str(self.program), *map(str, words)], capture_output=True, text=True, timeout=limit, env=bare(), stdin=subprocess.DEVNULL, **more)


@pytest.fixture
def hung_job():
    """A real 2-rank job that hangs: rank 0 makes a collective that only it calls. Call it to start the job; it is ended with the test."""
    torch = pytest.importorskip("torch")
    assert torch.distributed.is_available()
    import jobs
    case = {"script": "train.py", "kind": "rank-conditional-collective", "launch": "torchrun", "ranks": 2, "culprits": [0]}
    started = []

    def start(*prefix):
        started.append(jobs.Job("rank_conditional_collective", case, False, prefix=prefix))
        return started[-1]

    yield start
    for job in started:
        job.end()
