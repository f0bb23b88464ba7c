# SPDX-License-Identifier: Apache-2.0
"""Each rank samples until its own sequences have ended. The parameters are sharded, so every forward is a collective: rank 1 ends after
three tokens and goes on to its loss, rank 0 still generates. The twin goes on while any rank does."""
# EXPECT {"launch": "torchrun", "ranks": 2, "culprits": [1], "waiting": [0]}
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy

LONGEST = 16


def sharded(module):
    return FullyShardedDataParallel(module, device_id=torch.device("cpu"), sharding_strategy=ShardingStrategy.FULL_SHARD)


def generate(model, ids, ends_after):
    alive = torch.ones(1)
    for length in range(LONGEST):
        ids = model(ids)  # CULPRIT
        if length + 1 >= ends_after:
            alive.zero_()
        left = alive.clone()
        if "--healthy" in sys.argv:
            dist.all_reduce(left, op=dist.ReduceOp.MAX)
        if not left.any():
            break
    return ids


def main():
    dist.init_process_group("gloo")
    model = sharded(nn.Sequential(sharded(nn.Linear(8, 8)), sharded(nn.Linear(8, 8))))
    generator = torch.Generator().manual_seed(dist.get_rank())
    for step in range(10**9):
        if step == 3:
            print("READY", flush=True)
        ends_after = 12 if dist.get_rank() == 0 and step == 5 else 3
        with torch.no_grad():
            ids = generate(model, torch.randn(4, 8, generator=generator), ends_after)
        loss = ids.sum()
        dist.all_reduce(loss)


main()
