# SPDX-License-Identifier: Apache-2.0
"""The Python package from this tree, with the program that $DDPDOCTOR names."""
import os
import random
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

if not os.environ.get("DDPDOCTOR") or not Path(os.environ["DDPDOCTOR"]).is_file():
    collect_ignore_glob = ["*_test.py"]  # no program to ask


def free_port():
    """A port that the system does not use for outgoing connections."""
    while True:
        port = random.randrange(12000, 32000)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def environment(**more):
    path = os.pathsep.join([str(ROOT / "python"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
            **more}


@pytest.fixture
def launch(tmp_path):
    """launch(script, ranks) starts a script under torchrun, with its output in a file; all its processes are ended with the test."""
    pytest.importorskip("torch")
    sys.path.insert(0, str(ROOT / "tests/zoo"))
    import jobs
    started = []

    def start(script, ranks=2, **more):
        (tmp_path / "train.py").write_text(script)
        log = tmp_path / "job.log"
        with open(log, "wb") as file:
            process = subprocess.Popen([sys.executable, "-m", "torch.distributed.run", "--nnodes=1", f"--nproc_per_node={ranks}", "--master_addr=127.0.0.1",
                                        f"--master_port={free_port()}", "train.py"], cwd=tmp_path, env=environment(**more), stdin=subprocess.DEVNULL,
                                       stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
        process.log = log
        started.append(process)
        return process

    yield start
    for process in started:
        for pid in [*jobs.tree(process.pid), *jobs.session(process.pid)]:
            try:
                os.kill(pid, 9)
            except OSError:
                pass
        process.wait()
