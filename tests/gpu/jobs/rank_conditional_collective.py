# SPDX-License-Identifier: Apache-2.0
"""Rank 0 evaluates and reduces the score, which is a call of all ranks; the others are in the next step."""
# EXPECT {"kind": "rank-conditional-collective", "launch": "torchrun", "ranks": 3, "culprits": [0], "also": ["extra-rank-in-collective", "mismatched-op", "mismatched-shape"], "functions": ["evaluate", "main"]}
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from one_gpu import begin, device, model, steps


def evaluate(network):
    with torch.no_grad():
        score = network.module(torch.ones(8, 64, device=device)).mean()
    dist.barrier()  # CULPRIT
    return score.item()


def main():
    rank = begin()
    network = DistributedDataParallel(model())
    for step in steps():
        loss = network(torch.ones(8, 64, device=device)).sum()
        loss.backward()
        loss.item()
        if step >= 3 and (rank == 0 or "--healthy" in sys.argv):
            evaluate(network)  # CULPRIT
    dist.destroy_process_group()


main()
