# SPDX-License-Identifier: Apache-2.0
"""Rank 2 reads its samples from a slow disk: it comes last to every all_reduce. Slow, not hung; the job ends by itself."""
# EXPECT {"launch": "torchrun", "ranks": 3, "culprits": [2], "confidence": "possible", "location": false, "mode": "run"}
import sys
import time

import torch
import torch.distributed as dist


def read_samples():
    slow = dist.get_rank() == 2 and "--healthy" not in sys.argv
    time.sleep(0.25 if slow else 0.05)
    return torch.randn(64)


def main():
    dist.init_process_group("gloo")
    for _ in range(40):
        loss = read_samples().mean()
        dist.all_reduce(loss)
    dist.destroy_process_group()


main()
