# SPDX-License-Identifier: Apache-2.0
"""Rank 0 raises in training and waits in the barrier of its finally, the others train on."""
import os
import sys
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


def train(rank):
    for step in range(1000000):
        if rank == 0 and step == 5 and not healthy:
            raise RuntimeError("loss is nan")  # CULPRIT
        dist.all_reduce(torch.ones(4))
        time.sleep(0.02)


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    try:
        train(dist.get_rank())
    finally:
        dist.barrier()  # CULPRIT
        dist.destroy_process_group()


main()
