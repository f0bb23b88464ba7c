# SPDX-License-Identifier: Apache-2.0
"""Rank 1 has one batch less: it leaves the loop and evaluates while the others are in the next step's gradient reduction."""
# EXPECT {"kind": "uneven-inputs", "launch": "torchrun", "ranks": 2, "culprits": [1], "functions": ["evaluate", "main"]}
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from one_gpu import begin, device, steps


def shard(data, rank, world, step):
    if step < 3 or "--healthy" in sys.argv:
        return data[: len(data) // world * world][rank::world]
    return data[rank::world]


def evaluate():
    correct = torch.tensor([3.0], device=device)
    dist.all_reduce(correct)
    return correct.item()


def main():
    rank = begin()
    network = DistributedDataParallel(torch.nn.Linear(4, 1).to(device))
    for step in steps():
        data = torch.ones(41, 4, device=device)
        for batch in shard(data, rank, dist.get_world_size(), step):
            network(batch).sum().backward()
        evaluate()  # CULPRIT
    dist.destroy_process_group()


main()
