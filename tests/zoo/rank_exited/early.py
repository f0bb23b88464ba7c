# SPDX-License-Identifier: Apache-2.0
"""Rank 1 calls sys.exit(0) in the middle of training."""
import os
import sys
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


def should_skip(rank):
    return rank == 1 and not healthy


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for step in range(40):
        dist.all_reduce(torch.ones(4))  # CULPRIT: the last call of rank 1
        if step == 5 and should_skip(rank):
            sys.exit(0)  # CULPRIT
        time.sleep(0.05)
    dist.destroy_process_group()


main()
