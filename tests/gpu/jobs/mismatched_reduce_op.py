# SPDX-License-Identifier: Apache-2.0
"""One rank takes the maximum where the others add: nothing hangs, the numbers are wrong, and only a record of the calls shows it."""
# EXPECT {"kind": "mismatched-reduce-op", "launch": "torchrun", "ranks": 3, "culprits": [2], "functions": ["reduce"], "mode": "run"}
import sys

import torch
import torch.distributed as dist

from one_gpu import begin, device, steps


def reduce(loss, rank):
    dist.all_reduce(loss, op=dist.ReduceOp.MAX if rank == 2 and "--healthy" not in sys.argv else dist.ReduceOp.SUM)  # CULPRIT
    return loss.item()


def main():
    rank = begin()
    for step in steps():
        reduce(torch.ones(1, device=device), rank)
    dist.destroy_process_group()


main()
