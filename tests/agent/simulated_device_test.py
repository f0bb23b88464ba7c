# SPDX-License-Identifier: Apache-2.0
"""The simulated device (tests/doubles/simulated_device): healthy jobs compute correct numbers, and a mistake has the effect that it has on
a GPU. It needs g++."""
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "doubles" / "simulated_device"
sys.path.insert(0, str(FOLDER))
import build  # noqa: E402
import device  # noqa: E402

pytestmark = pytest.mark.skipif(build.why_not() is not None, reason=str(build.why_not()))

BEGIN = """
import sys, torch, torch.distributed as dist
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=int(sys.argv[2]), world_size=3)
rank = dist.get_rank()
"""

NUMBERS = BEGIN + """
def same(tensor, wanted):
    assert tensor.tolist() == wanted, (rank, tensor.tolist(), wanted)
one = torch.full((2,), rank + 1.0)
dist.all_reduce(one)
same(one, [6.0, 6.0])
mean = torch.tensor([rank * 3.0])
dist.all_reduce(mean, op=dist.ReduceOp.AVG)
same(mean, [3.0])
top = torch.tensor([rank])
dist.all_reduce(top, op=dist.ReduceOp.MAX)
same(top, [2])
sent = torch.tensor([rank + 5])
dist.broadcast(sent, src=1)
same(sent, [6])
root = torch.tensor([1.0])
dist.reduce(root, dst=2)
assert rank != 2 or root.item() == 3.0
all_of = [torch.zeros(1) for _ in range(3)]
dist.all_gather(all_of, torch.tensor([float(rank)]))
same(torch.cat(all_of), [0.0, 1.0, 2.0])
flat = torch.zeros(3)
dist.all_gather_into_tensor(flat, torch.tensor([float(rank)]))
same(flat, [0.0, 1.0, 2.0])
part = torch.zeros(1)
dist.reduce_scatter_tensor(part, torch.arange(3.0))
same(part, [rank * 3.0])
parts = torch.zeros(1)
dist.reduce_scatter(parts, [torch.tensor([float(i)]) for i in range(3)])
same(parts, [rank * 3.0])
mixed = torch.zeros(3)
dist.all_to_all_single(mixed, torch.arange(3.0) + 10 * rank)
same(mixed, [0.0 + rank, 10.0 + rank, 20.0 + rank])
gathered = [torch.zeros(1) for _ in range(3)] if rank == 0 else None
dist.gather(torch.tensor([float(rank)]), gathered, dst=0)
assert rank != 0 or torch.cat(gathered).tolist() == [0.0, 1.0, 2.0]
mine = torch.zeros(1)
dist.scatter(mine, [torch.tensor([i + 1.0]) for i in range(3)] if rank == 1 else None, src=1)
same(mine, [rank + 1.0])
if rank == 0:
    dist.send(torch.tensor([7.0]), 2)
elif rank == 2:
    got = torch.zeros(1)
    dist.recv(got, 0)
    same(got, [7.0])
others = torch.zeros(1)
for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.tensor([float(rank)]), (rank + 1) % 3), dist.P2POp(dist.irecv, others, (rank + 2) % 3)]):
    work.wait()
same(others, [float((rank + 2) % 3)])
pair = dist.new_group([0, 2])
if rank != 1:
    less = torch.tensor([1.0])
    dist.all_reduce(less, group=pair)
    same(less, [2.0])
things = [None] * 3
dist.all_gather_object(things, {"rank": rank})
assert [thing["rank"] for thing in things] == [0, 1, 2]
from torch.nn.parallel import DistributedDataParallel
model = DistributedDataParallel(torch.nn.Linear(2, 1, bias=False))
model(torch.full((1, 2), rank + 1.0)).sum().backward()
same(model.module.weight.grad, [[2.0, 2.0]])
dist.barrier()
print("RIGHT", dist.get_backend(), flush=True)
__import__("os")._exit(0)  # torch 2.13 aborts in one of many ordinary exits
dist.destroy_process_group()
"""

# A rank skips a call: the others' hosts run ahead, then need a value.
SPINS = BEGIN + """
dist.barrier()
print("READY", flush=True)
values = torch.ones(4)
if rank != 1:
    dist.all_reduce(values)
values.mul_(2)
print("AHEAD", flush=True)
print(values.sum().item(), flush=True)
if rank == 1:
    import time
    time.sleep(60)
"""

FILLS = BEGIN + """
dist.barrier()
for step in range(1000):
    if rank != 1:
        dist.all_reduce(torch.ones(4))
        print("STEP", flush=True)
import time
time.sleep(60)
"""


class Job:
    def __init__(self, tmp_path, script, seconds=60):
        self.gpu = device.Device(seconds)
        file = tmp_path / "job.py"
        file.write_text(script)
        environment = {**os.environ, **self.gpu.environment, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        self.logs = [tmp_path / f"rank{rank}.log" for rank in range(3)]
        self.ranks = [subprocess.Popen([sys.executable, str(file), str(tmp_path / "store"), str(rank)], env=environment, stdout=log.open("w"), stderr=subprocess.STDOUT)
                      for rank, log in enumerate(self.logs)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for rank in self.ranks:
            rank.kill()
            rank.wait()
        self.gpu.end()

    def said(self, rank):
        return self.logs[rank].read_text()

    def until(self, true, limit=60):
        end = time.time() + limit
        while not true() and time.time() < end:
            time.sleep(0.1)
        assert true(), "\n".join(self.said(rank)[-2000:] for rank in range(3))


def state(process):
    text = Path(f"/proc/{process.pid}/stat").read_text()
    return text[text.rindex(")") + 2]


def test_every_call_of_a_healthy_job_computes_what_it_should(tmp_path):
    with Job(tmp_path, NUMBERS) as job:
        job.until(lambda: all(rank.poll() is not None for rank in job.ranks), 90)
        assert [rank.returncode for rank in job.ranks] == [0, 0, 0], "".join(job.said(rank) for rank in range(3))
        assert all("RIGHT nccl" in job.said(rank) for rank in range(3))


def test_a_host_runs_ahead_of_a_call_that_hangs_and_spins_for_a_value(tmp_path):
    with Job(tmp_path, SPINS) as job:
        job.until(lambda: all("AHEAD" in job.said(rank) for rank in range(3)))
        time.sleep(1)
        seen = [[state(job.ranks[rank]) for rank in (0, 2)] for _ in range(5)]
        assert seen == [["R", "R"]] * 5
        assert not any("Error" in job.said(rank) for rank in range(3))
        assert "libcuda.so.1" in Path(f"/proc/{job.ranks[0].pid}/maps").read_text()


def test_a_full_launch_queue_stops_the_host(tmp_path):
    with Job(tmp_path, FILLS) as job:
        job.until(lambda: job.said(0).count("STEP") >= 60)
        time.sleep(2)
        assert job.said(0).count("STEP") == 64 and state(job.ranks[0]) == "R"


def test_the_device_ends_a_job_that_is_not_ended(tmp_path):
    with Job(tmp_path, SPINS, seconds=15) as job:
        job.until(lambda: job.ranks[0].poll() is not None, 40)
        assert job.ranks[0].returncode == -9
