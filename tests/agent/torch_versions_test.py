# SPDX-License-Identifier: Apache-2.0
"""What the agent records about a call (reduce operation, root, shape, type), in every torch that is installed, also if its version text is
not that of any release: the offsets are found in memory.

$DDPDOCTOR_TORCH_VERSIONS names Pythons with further releases of torch (paths separated by colons)."""
import os
import subprocess
import sys

import pytest

from guest import needs_agent, under
from rings import rings

pytest.importorskip("torch")
pytestmark = needs_agent

PYTHONS = [sys.executable, *filter(None, os.environ.get("DDPDOCTOR_TORCH_VERSIONS", "").split(":"))]
OPERATIONS = {"SUM": 0, "PRODUCT": 2, "MIN": 3, "MAX": 4}
FLOAT32, INT64, FLOAT64 = 6, 4, 7

JOB = '''
import sys, torch, torch.distributed as dist
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
op = dist.ReduceOp
two = [torch.ones(2), torch.ones(2)]
dist.all_reduce(torch.ones(()), op=op.MAX)
dist.all_reduce(torch.ones(3, 5), op=op.MIN)
dist.all_reduce(torch.ones(1), op=op.SUM)
dist.reduce(torch.ones(4, 1, 2, 1, 3, 1, dtype=torch.float64), 1, op=op.PRODUCT)
dist.reduce(torch.ones(7), 0)
dist.broadcast(torch.ones(2, 2, dtype=torch.int64), 1)
dist.gather(torch.ones(2), two if rank == 1 else None, dst=1)
dist.scatter(torch.ones(2), two if rank == 0 else None, src=0)
dist.all_gather(two, torch.ones(2))
dist.barrier()
dist.destroy_process_group()  # without it torch 2.13 aborts at exit in one of three runs, also without the agent
'''
# operation of the call, reduce operation, root, elements, type, shape
EXPECTED = [("MAX", -1, 1, FLOAT32, ""), ("MIN", -1, 15, FLOAT32, "3x5"), ("SUM", -1, 1, FLOAT32, "1"), ("PRODUCT", 1, 24, FLOAT64, "4x1x2x1x3x1"),
            ("SUM", 0, 7, FLOAT32, "7"), (None, 1, 4, INT64, "2x2"), (None, 1, 2, FLOAT32, "2"), (None, 0, 2, FLOAT32, "2"),
            (None, -1, 2, FLOAT32, "2")]


def run_job(python, folder, more=""):
    (folder / "job.py").write_text(more + JOB)
    folders = [folder / f"rank{rank}" for rank in range(2)]
    ranks = []
    for rank, spool in enumerate(folders):
        spool.mkdir(mode=0o700)
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
        ranks.append(subprocess.Popen([python, folder / "job.py", str(rank), folder / "store"], env=under(spool, environment), stderr=subprocess.PIPE))
    for rank in ranks:
        _, err = rank.communicate(timeout=240)
        assert rank.returncode == 0, err.decode()[-2000:]
    return [ring for spool in folders for ring in rings(spool).values() if ring.of("collective")]


def told(ring):
    calls = [event for event in ring.of("collective") if event.phase == 0]
    return [(next((name for name, number in OPERATIONS.items() if number == call.reduce_op), None), call.peer, call.count, call.dtype, call.text)
            for call in calls[-10:-1]]


@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: os.path.basename(os.path.dirname(path)) + "-" + os.path.basename(path))
def test_every_torch_tells_its_calls(python, tmp_path):
    found = run_job(python, tmp_path)
    assert len(found) == 2
    for ring in found:
        calls = told(ring)
        if calls[0][2] == -1:  # a release without functions for tensors: a scalar proves no layout
            calls[0] = (*calls[0][:2], *EXPECTED[0][2:])
        assert calls == EXPECTED
        assert not ring.disabled & (16 | 32)
