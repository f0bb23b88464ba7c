# SPDX-License-Identifier: Apache-2.0
"""Rank 2 raises in its loss; the others are in the all_reduce of the same step and print an error of the connection."""
import sys

import torch
import torch.distributed as dist


def loss_of(batch, rank, step):
    if rank == 2 and step == 3 and "--healthy" not in sys.argv:
        return batch["target"]  # CULPRIT
    return torch.tensor(1.0)


def main():
    dist.init_process_group("gloo")
    for step in range(5):
        dist.all_reduce(loss_of({}, dist.get_rank(), step))
    dist.destroy_process_group()


main()
