# SPDX-License-Identifier: Apache-2.0
"""Because of a batch without images, rank 1 skips a sharded tower: the others gather its parameters, and rank 1 never does."""
# EXPECT {"launch": "torchrun", "ranks": 2, "culprits": [1]}
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        cpu = torch.device("cpu")
        self.text = FullyShardedDataParallel(nn.Linear(8, 8), device_id=cpu, sharding_strategy=ShardingStrategy.FULL_SHARD)
        self.image = FullyShardedDataParallel(nn.Linear(8, 8), device_id=cpu, sharding_strategy=ShardingStrategy.FULL_SHARD)

    def forward(self, text, image):
        out = self.text(text)
        if image is not None:
            out = out + self.image(image)  # CULPRIT
        return out


def main():
    dist.init_process_group("gloo")
    model = TwoTowers()
    for step in range(10**9):
        if step == 3:
            print("READY", flush=True)
        empty = step == 5 and dist.get_rank() == 1 and "--healthy" not in sys.argv
        model(torch.randn(4, 8), None if empty else torch.randn(4, 8)).sum().backward()  # CULPRIT


main()
