# SPDX-License-Identifier: Apache-2.0
"""Rank 2 takes itself for the source of a broadcast that comes from rank 0."""
import sys

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    source = 2 if dist.get_rank() == 2 and "--healthy" not in sys.argv else 0
    for _ in range(3):
        dist.broadcast(torch.ones(4), src=source)  # CULPRIT
    dist.barrier()
    dist.destroy_process_group()


main()
