# SPDX-License-Identifier: Apache-2.0
"""Rank 1 sends other split sizes in all_to_all_single than the others expect."""
import os
import sys
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


def exchange(rank):
    out_splits, in_splits = [2, 2], [2, 2]
    if rank == 1 and not healthy:
        in_splits = [3, 1]
    out = torch.zeros(4)
    dist.all_to_all_single(out, torch.ones(4), out_splits, in_splits)  # CULPRIT
    return out


def main():
    dist.init_process_group("gloo")
    for step in range(5):
        exchange(dist.get_rank() if step == 3 else 0)
    dist.destroy_process_group()


main()
