# SPDX-License-Identifier: Apache-2.0
"""One rank of a gloo job that hangs in a known place, for tests/unit/stacks/torch_live_test.cc.

Usage: torch_ring.py RANK WORLD_SIZE STORE_FILE. Says "ready" before the call it hangs in, ends when stdin closes. Lines that the
test looks for carry a comment "HERE: name".
"""

import datetime
import os
import sys
import threading

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["TORCH_FR_BUFFER_SIZE"] = "2000"  # off by default up to torch 2.10
os.environ["RANK"], os.environ["WORLD_SIZE"] = sys.argv[1:3]

import torch
import torch.distributed as dist

if "DDPDOCTOR_TORCH_SAYS" in os.environ:  # as a vendor's build would
    torch.version.__version__ = os.environ["DDPDOCTOR_TORCH_SAYS"]


def end_with_the_test():
    sys.stdin.read()
    os._exit(0)


def evaluate(group, rank):
    if rank == 0:
        dist.all_reduce(torch.ones(1000, 7, dtype=torch.float64), op=dist.ReduceOp.MAX, group=group)  # HERE: rank 0 hangs
    else:
        dist.barrier(group=group)  # HERE: rank 1 hangs


def main():
    rank, world_size = int(sys.argv[1]), int(sys.argv[2])
    threading.Thread(target=end_with_the_test, daemon=True).start()
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[3]}", rank=rank, world_size=world_size,
                            timeout=datetime.timedelta(minutes=10))
    group = dist.new_group(list(range(world_size)), group_desc="evaluation of the model")
    dist.new_group([0])
    for _ in range(10):
        dist.all_reduce(torch.tensor(3))  # HERE: loop
    dist.broadcast(torch.nn.Parameter(torch.zeros(2, 3), requires_grad=False), 0)  # HERE: broadcast
    if rank == 0:
        dist.send(torch.ones(2), 1)
    else:
        dist.recv(torch.ones(2), 0)
    print("ready", flush=True)
    try:
        evaluate(group, rank)  # HERE: caller
    except RuntimeError:  # the other rank was ended first
        threading.Event().wait()


main()
