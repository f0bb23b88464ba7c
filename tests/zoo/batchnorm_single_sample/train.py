# SPDX-License-Identifier: Apache-2.0
"""The last batch of rank 1 has one sample; BatchNorm refuses it in training."""
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.linear(x))  # CULPRIT


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(Head())
    last = 1 if dist.get_rank() == 1 and "--healthy" not in sys.argv else 8
    for size in (8, 8, last):
        model(torch.randn(size, 4)).sum().backward()
    dist.destroy_process_group()


main()
