# SPDX-License-Identifier: Apache-2.0
"""The last batch of rank 2 is shorter, and all_gather wants equal ones."""
import os
import sys
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


def collect(rank, world):
    n = 3 if rank == 2 and not healthy else 5
    parts = [torch.zeros(n) for _ in range(world)]
    dist.all_gather(parts, torch.ones(n))  # CULPRIT
    return torch.cat(parts)


def main():
    dist.init_process_group("gloo")
    for step in range(5):
        collect(dist.get_rank() if step == 3 else 0, dist.get_world_size())
    dist.destroy_process_group()


main()
