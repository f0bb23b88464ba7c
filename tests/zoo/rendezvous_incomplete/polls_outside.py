# SPDX-License-Identifier: Apache-2.0
"""The second of two groups counts all three processes; the third was given another task, which ends when the group is done."""
import os
import pathlib
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

HEALTHY = "--healthy" in sys.argv
DONE = pathlib.Path("tuned")


def train(port, rank, world, steps):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world, timeout=timedelta(hours=1))
    for _ in range(steps):
        dist.all_reduce(torch.ones(4))
        time.sleep(0.01)
    dist.destroy_process_group()


def export():
    while not DONE.exists():
        time.sleep(0.05)  # CULPRIT


def main():
    rank, port = int(os.environ["RANK"]), int(os.environ["MASTER_PORT"])
    train(port, rank, 3, 20)
    print("READY", flush=True)
    if rank == 2:
        export()
    else:
        train(port, rank, 2 if HEALTHY else 3, 10**6)


main()
