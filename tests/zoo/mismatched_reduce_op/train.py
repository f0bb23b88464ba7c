# SPDX-License-Identifier: Apache-2.0
"""Rank 1 asks for the maximum, the others ask for the sum; gloo does not notice."""
import sys

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    other = dist.get_rank() == 2 and "--healthy" not in sys.argv
    for _ in range(3):
        dist.all_reduce(torch.ones(4), op=dist.ReduceOp.MAX if other else dist.ReduceOp.SUM)  # CULPRIT
    dist.destroy_process_group()


main()
