# SPDX-License-Identifier: Apache-2.0
"""One child of mp.spawn raises while it loads; the parent then ends the others with SIGTERM."""
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

healthy = "--healthy" in sys.argv


def load(rank):
    if rank == 1 and not healthy:
        return {}["shard-1"]  # CULPRIT
    return torch.ones(3)


def worker(rank, world, port):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    data = load(rank)
    time.sleep(2 if not healthy else 0)
    dist.all_reduce(data)


def main():
    world = 3
    context = mp.spawn(worker, args=(world, os.environ["ZOO_PORT"]), nprocs=world, join=False)
    while not context.join():
        pass


if __name__ == "__main__":
    main()
