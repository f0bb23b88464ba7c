# SPDX-License-Identifier: Apache-2.0
"""Rank 1 gathers a shorter last batch; gloo aborts the process that receives too much."""
import sys

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    for step in range(4):
        short = dist.get_rank() == 2 and step == 3 and "--healthy" not in sys.argv
        dist.all_reduce(torch.ones(5 if short else 8))  # CULPRIT
    dist.destroy_process_group()


main()
