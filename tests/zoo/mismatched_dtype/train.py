# SPDX-License-Identifier: Apache-2.0
"""Rank 1 reduces an int32 where the other reduces a float32 of the same size in bytes: gloo does not notice."""
import sys

import torch
import torch.distributed as dist


def metric(rank):
    if rank == 1 and "--healthy" not in sys.argv:
        return torch.ones(4, dtype=torch.int32)
    return torch.ones(4, dtype=torch.float32)


def main():
    dist.init_process_group("gloo")
    for _ in range(3):
        dist.all_reduce(metric(dist.get_rank()))  # CULPRIT
    dist.destroy_process_group()


main()
