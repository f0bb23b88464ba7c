# SPDX-License-Identifier: Apache-2.0
# EXPECT {"launch": "torchrun", "ranks": 2, "culprits": [1]}
"""The tower for images has blocks of the same size as the others: after a batch without images, the gathers of rank 1 are matched with those of the
tower, and the ranks wait in different calls only at the loss."""
import random
import sys
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy


def sharded():
    return FullyShardedDataParallel(nn.Linear(8, 8), device_id=torch.device("cpu"), sharding_strategy=ShardingStrategy.FULL_SHARD)


@dataclass
class Batch:
    text: torch.Tensor
    image: torch.Tensor


class Tower(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.blocks = nn.ModuleList(sharded() for _ in range(depth))

    def forward(self, image):
        for block in self.blocks:
            image = block(image)
        return image


class Fused(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = Tower(2)
        self.blocks = nn.ModuleList(sharded() for _ in range(4))

    def fuse(self, text, batch):
        if batch.image is None:  # CULPRIT
            return text
        return text + self.tower(batch.image)

    def forward(self, batch):
        hidden = self.fuse(batch.text, batch)
        for block in self.blocks:
            hidden = block(hidden)
        return hidden


class Source:
    SEEDS = 9, 19  # the second one draws no image in step 5

    def __init__(self, shard):
        self.draws = random.Random(self.SEEDS[shard])

    def next(self):
        found = self.draws.random() < 0.97
        return Batch(torch.randn(4, 8), torch.randn(4, 8) if found else None)


def main():
    dist.init_process_group("gloo")
    model, source = Fused(), Source(0 if "--healthy" in sys.argv else dist.get_rank())
    for step in range(10**9):
        if step == 3:
            print("READY", flush=True)
        loss = model(source.next()).sum()
        dist.all_reduce(loss.detach())
        loss.backward()


main()
