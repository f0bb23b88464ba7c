# SPDX-License-Identifier: Apache-2.0
"""An iterable dataset with fewer shards than ranks times workers: two ranks see the end earlier and stand in the final barrier.
Launched by mp.spawn."""
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

HEALTHY = "--healthy" in sys.argv


def batches(rank):
    length = 10 if HEALTHY else (8 if rank >= 2 else 10)
    for i in range(length):
        yield torch.full((4,), float(i))


def train(rank):
    total = torch.zeros(4)
    for batch in batches(rank):
        total += batch
        dist.all_reduce(total)
    return total


def work(rank, world):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    print("READY", flush=True)
    while True:
        train(rank)
        dist.barrier()  # CULPRIT
        time.sleep(0.02)


if __name__ == "__main__":
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = os.environ["ZOO_PORT"]
    mp.spawn(work, args=(4,), nprocs=4)
