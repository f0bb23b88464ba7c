# SPDX-License-Identifier: Apache-2.0
"""Debian's torch 1.13.1 (python3-torch) under `run` and `attach`: two gloo ranks that hang or disagree, and two healthy ones.

1.13 is the oldest torch whose names the agent has: no getBackend, no functions that return a tensor's size, another Reducer."""
import json
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from guest import TOOL, needs_agent
from rings import rings

PYTHON = "/usr/bin/python3"


def installed():
    try:
        done = subprocess.run([PYTHON, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


pytestmark = [needs_agent, pytest.mark.skipif(not installed().startswith("1.13."), reason=f"{PYTHON} has no torch 1.13: apt install python3-torch")]

HEAD = "import time, torch, torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel\n\n\ndef train():\n" \
       "    dist.init_process_group('gloo')\n    rank = dist.get_rank()\n"
SHAPE = HEAD + """    for step in range(3):
        dist.all_reduce(torch.ones(20 if rank == 1 and step == 2 else 30))  # HERE


train()
"""
UNUSED = HEAD + """    net = DistributedDataParallel(Net())
    for step in range(3):
        net(torch.ones(4, 8), rank == 0 or step < 2).sum().backward()  # HERE
    dist.barrier()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head, self.router = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x, routed):
        if routed:
            return self.head(x) + self.router(x)
        return self.head(x)


train()
"""
BARRIER = HEAD + """    dist.all_reduce(torch.ones(4))
    if rank == 0:
        dist.barrier()  # HERE
    for step in range(3):
        dist.all_reduce(torch.ones(4))


train()
"""
HEALTHY = HEAD + """    net = DistributedDataParallel(torch.nn.Linear(8, 8))
    for step in range(30):
        net(torch.ones(4, 8)).sum().backward()
        dist.reduce(torch.ones(3, 4), 1, op=dist.ReduceOp.MAX)
        dist.broadcast(torch.ones(2, dtype=torch.int64), 1)
        time.sleep(0.05)
    dist.barrier()


train()
"""
LAUNCH = "for r in 0 1; do RANK=$r " + PYTHON + " train.py & pids=\"$pids $!\"; done; worst=0; for p in $pids; do wait $p || worst=$?; done; exit $worst"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def variables():
    return dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), WORLD_SIZE="2", GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")


def run(folder, script, **more):
    (folder / "train.py").write_text(script)
    (folder / "spool").mkdir(mode=0o700)
    command = [str(TOOL), "run", "--hang-timeout", "4", "--on-hang", "kill", "--always", "--spool", "spool", "--report-dir", "report", "--", "bash", "-c", LAUNCH]
    done = subprocess.run(command, cwd=folder, env={**variables(), **more}, capture_output=True, text=True, timeout=120, check=False)
    report = folder / "report" / "report.json"
    return done, json.loads(report.read_text()) if report.is_file() else None


def first(report):
    assert report and report["findings"], report
    return report["findings"][0]


def here(script):
    return next(number for number, line in enumerate(script.splitlines(), 1) if "# HERE" in line)


def lines(finding):
    return [place.get("line") for place in finding["locations"]]


def test_sizes_that_differ_are_named_with_both_of_them(tmp_path):
    found = first(run(tmp_path, SHAPE)[1])
    assert found["kind"] == "mismatched-shape" and lines(found)[0] == here(SHAPE)
    assert "[20]" in found["summary"] and "[30]" in found["summary"] and "float32" in json.dumps(found["evidence"])


@pytest.mark.parametrize("level,names", [("INFO", ["router.bias", "router.weight"]), ("OFF", ["parameter 2", "parameter 3"])])
def test_parameters_without_a_gradient_are_named(level, names, tmp_path):
    # without TORCH_DISTRIBUTED_DEBUG this torch passes no names to its reducer
    found = first(run(tmp_path, UNUSED, TORCH_DISTRIBUTED_DEBUG=level)[1])
    assert (found["kind"], found["culprits"]) == ("unused-parameters", [1])
    assert found["details"]["parameters"] == names


def test_a_barrier_of_one_rank_is_found(tmp_path):
    found = first(run(tmp_path, BARRIER)[1])
    assert (found["kind"], found["culprits"], lines(found)[0]) == ("rank-conditional-collective", [0], here(BARRIER))


def test_a_healthy_job_is_left_alone_and_recorded_in_full(tmp_path):
    done, report = run(tmp_path, HEALTHY)
    assert done.returncode == 0 and (report is None or not report["findings"]), done.stderr
    ranks = [ring for ring in rings(tmp_path / "spool").values() if ring.of("collective")]
    assert len(ranks) == 2
    for ring in ranks:
        calls = [event for event in ring.of("collective") if event.phase == 0]
        ends = [event for event in ring.of("collective") if event.phase == 2]
        maximum, floats, integers = 4, 6, 4
        assert {(e.text, e.count, e.peer, e.reduce_op, e.dtype) for e in calls if e.operation == 3} == {("3x4", 12, 1, maximum, floats)}
        assert {(e.text, e.peer, e.dtype) for e in calls if e.operation == 2 and e.count == 2} == {("2", 1, integers)}
        assert len(ends) == len(calls) > 90 and ring.torn == ring.lost == 0


def wait_for(condition, limit=60):
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize("script,kind,culprits", [(BARRIER, "rank-conditional-collective", [0]), (UNUSED, None, [1])], ids=["barrier", "backward"])
def test_attach_reads_it_without_an_agent(script, kind, culprits, tmp_path):
    (tmp_path / "train.py").write_text(script)
    job = subprocess.Popen(["bash", "-c", LAUNCH], cwd=tmp_path, env=variables(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        children = Path(f"/proc/{job.pid}/task/{job.pid}/children")

        def hangs():
            states = [Path(f"/proc/{pid}/status").read_text() for pid in children.read_text().split()]
            return len(states) == 2 and all(re.search(r"^State:\s+S", state, re.M) and int(re.search(r"Threads:\s+(\d+)", state).group(1)) > 3 for state in states)
        wait_for(hangs)
        time.sleep(2)
        subprocess.run([str(TOOL), "attach", str(job.pid), "-o", "report.json"], cwd=tmp_path, capture_output=True, timeout=60, check=False)
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    found = first(json.loads((tmp_path / "report.json").read_text()))
    assert found["culprits"] == culprits and here(script) in lines(found)
    assert kind is None or found["kind"] == kind
