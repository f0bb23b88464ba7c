# SPDX-License-Identifier: Apache-2.0
# EXPECT {"launch": "torchrun", "ranks": 2, "culprits": [0]}
"""A router yields only the experts that a token chose; the tokens of rank 0 leave one out, and rank 1 gathers its parameters alone."""
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy


class Mixture(nn.Module):
    def __init__(self, experts):
        super().__init__()
        cpu = torch.device("cpu")
        self.experts = nn.ModuleList(
            FullyShardedDataParallel(nn.Linear(8, 8), device_id=cpu, sharding_strategy=ShardingStrategy.FULL_SHARD) for _ in range(experts))

    def chosen(self, tokens, choice):
        for number, expert in enumerate(self.experts):
            mine = choice == number
            if mine.any():
                yield expert, mine

    def forward(self, tokens, choice):
        out = torch.zeros_like(tokens)
        for expert, mine in self.chosen(tokens, choice):
            out[mine] = expert(tokens[mine])
        return out


def main():
    dist.init_process_group("gloo")
    model = Mixture(4)
    for step in range(10**9):
        if step == 3:
            print("READY", flush=True)
        choice = torch.arange(16) % 4
        if step == 5 and dist.get_rank() == 0 and "--healthy" not in sys.argv:
            choice[choice == 3] = 2
        model(torch.randn(16, 8), choice).sum().backward()  # CULPRIT


main()
