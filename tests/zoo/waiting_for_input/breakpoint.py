# SPDX-License-Identifier: Apache-2.0
"""A breakpoint() was left in the training step of rank 1. Launched by a bare shell."""
import sys
import time

import torch
import torch.distributed as dist


def step(rank, number):
    loss = torch.ones(1)
    if rank == 1 and number == 3 and "--healthy" not in sys.argv:
        breakpoint()  # CULPRIT
    dist.all_reduce(loss)  # CULPRIT
    return loss


def main():
    dist.init_process_group("gloo")
    for number in range(100000):
        if number == 3:
            print("READY", flush=True)
        step(dist.get_rank(), number)
        time.sleep(0.02)


main()
