# SPDX-License-Identifier: Apache-2.0
"""A shell starts for each rank a helper, which inherits RANK and ends at once, and then the rank. Rank 2 finds no files left for it and leaves
before init_process_group, where the others wait. Healthy: there is a file for each, and rank 2 takes its time to read its own."""
import os
import sys
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv
FILES = ["a", "b", "c"] if healthy else ["a", "b"]


def read(files, rank):
    end = time.time() + (9 if rank == 2 else 0)
    total = 0
    while time.time() < end:
        total += sum(range(1000))
    return torch.full((1,), float(len(files)))


def main():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if world < 2:
        return
    files = FILES[rank::world]
    if not files:
        print(f"rank {rank} has nothing to do")
        sys.exit(0)  # CULPRIT
    count = read(files, rank)
    dist.init_process_group("gloo")
    dist.all_reduce(count)
    dist.destroy_process_group()


main()
