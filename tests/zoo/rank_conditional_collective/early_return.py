# SPDX-License-Identifier: Apache-2.0
"""All ranks but the first return early from the function that ends in a broadcast; rank 0 waits in it, the others at a later barrier.
Re-enacts: `if rank != 0: return` above a collective. Launched by mp.spawn."""
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

HEALTHY = "--healthy" in sys.argv


def publish_vocabulary(rank):
    if rank != 0 and not HEALTHY:
        return
    sizes = torch.zeros(3, dtype=torch.int64)
    dist.all_reduce(sizes)  # CULPRIT


def work(rank, world):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    print("READY", flush=True)
    publish_vocabulary(rank)
    while True:
        dist.barrier()
        time.sleep(0.02)


if __name__ == "__main__":
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = os.environ["ZOO_PORT"]
    mp.spawn(work, args=(3,), nprocs=3)
