# SPDX-License-Identifier: Apache-2.0
"""Two mp.spawn "nodes" on one machine: the rank is node * 2 + index, and one worker loads for long before it joins."""
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(index, node):
    rank = node * 2 + index
    print("READY", flush=True)
    if rank == 3:
        time.sleep(12)
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:" + os.environ["ZOO_PORT"], rank=rank, world_size=4)
    for _ in range(200):
        dist.all_reduce(torch.ones(4))
        time.sleep(0.05)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, args=(int(sys.argv[1]),), nprocs=2)
