# SPDX-License-Identifier: Apache-2.0
"""Rank 1's compute stream runs a kernel that does not end; its all_reduce is queued behind it, and the other rank's waits on the GPU."""
# EXPECT {"kind": "gpu-stalled", "launch": "torchrun", "ranks": 2, "culprits": [1], "location": false, "gloo": [], "nccl": ["run"]}
import sys

import torch
import torch.distributed as dist

from one_gpu import begin, device, steps


def train_step(rank, step, data):
    data.mul_(0.5)
    if rank == 1 and step == 4 and "--healthy" not in sys.argv:
        torch.cuda._sleep(10**14)  # CULPRIT
    dist.all_reduce(data)
    return data.sum().item()


def main():
    rank = begin()
    data = torch.ones(4096, device=device)
    for step in steps():
        train_step(rank, step, data)
    dist.destroy_process_group()


main()
