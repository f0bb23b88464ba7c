# SPDX-License-Identifier: Apache-2.0
"""A ring passes its tensor on; rank 1 sends it back to rank 0 instead of on to rank 2."""
import os
import sys
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


def pass_on(rank, world, x):
    nxt = (rank + 1) % world
    if rank == 1 and not healthy:
        nxt = 0
    if rank == 0:
        dist.send(x, nxt)
        dist.recv(x, world - 1)
    else:
        dist.recv(x, rank - 1)
        dist.send(x, nxt)  # CULPRIT


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    x = torch.ones(200000)
    for step in range(100000):
        pass_on(dist.get_rank(), dist.get_world_size(), x)
        time.sleep(0.02)


main()
