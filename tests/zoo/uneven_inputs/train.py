# SPDX-License-Identifier: Apache-2.0
"""Rank 1 has one batch less: it leaves the loop and evaluates while the others are in the next step's gradient reduction.
Re-enacts: a sampler that strides without padding."""
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def shard(data, rank, world):
    if "--healthy" in sys.argv:
        return data[: len(data) // world * world][rank::world]
    return data[rank::world]


def evaluate(model):
    correct = torch.tensor([3.0])
    dist.all_reduce(correct)
    return correct


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    for epoch in range(10000):
        for batch in shard(torch.ones(41, 4), rank, world):
            model(batch).sum().backward()
        if epoch == 0:
            print("READY", flush=True)
        evaluate(model)  # CULPRIT
        time.sleep(0.02)


main()
