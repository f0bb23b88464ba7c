# SPDX-License-Identifier: Apache-2.0
"""A pipeline in which one stage expects one micro-batch more than its predecessor sends."""
import sys
import time

import torch
import torch.distributed as dist


def run_stage(rank, world, micro_batches):
    activation = torch.zeros(8)
    for i in range(micro_batches):
        if rank > 0:
            dist.recv(activation, src=rank - 1)  # CULPRIT
        if rank < world - 1:
            dist.send(activation + i, dst=rank + 1)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    dist.barrier()
    print("READY", flush=True)
    while True:
        extra = 0 if "--healthy" in sys.argv else int(rank == 2)
        run_stage(rank, world, 4 + extra)
        dist.barrier()
        time.sleep(0.02)


main()
