# SPDX-License-Identifier: Apache-2.0
"""Children of mp.spawn set RANK themselves; the last has nothing to do and returns before init_process_group, where the others wait."""
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

healthy = "--healthy" in sys.argv


def worker(rank, world):
    os.environ["RANK"] = str(rank)
    os.environ["WORLD_SIZE"] = str(world)
    if rank == 2 and not healthy:
        return  # CULPRIT
    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(3))
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ["ZOO_PORT"])
    mp.spawn(worker, args=(3,), nprocs=3)
