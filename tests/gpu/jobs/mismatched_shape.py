# SPDX-License-Identifier: Apache-2.0
"""The last batch of rank 1 is shorter and it reduces a shorter tensor. gloo ends with an error, NCCL waits on the GPU."""
# EXPECT {"kind": "mismatched-shape", "launch": "torchrun", "ranks": 3, "culprits": [1], "functions": ["total"], "gloo": ["run"]}
import sys

import torch
import torch.distributed as dist

from one_gpu import begin, device, steps


def total(scores):
    dist.all_reduce(scores)  # CULPRIT
    return scores.sum().item()


def main():
    rank = begin()
    for step in steps():
        short = rank == 1 and step == 3 and "--healthy" not in sys.argv
        total(torch.ones(1 << 14 if short else 1 << 20, device=device))
    dist.destroy_process_group()


main()
