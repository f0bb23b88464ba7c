# SPDX-License-Identifier: Apache-2.0
"""Both ranks make twelve steps; in the last one rank 1 skips the extra head, and continues to the barrier after the loop."""
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

HEALTHY = "--healthy" in sys.argv


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.extra = nn.Linear(8, 8)

    def forward(self, x, use):
        x = self.body(x)
        if use:  # CULPRIT
            x = self.extra(x)
        return x.sum()


def epoch(model, steps):
    for step in range(steps):
        loss = model(torch.randn(4, 8), step < 11 or dist.get_rank() == 0 or HEALTHY)
        if step == 11:
            print("READY", flush=True)
        loss.backward()


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(Net())
    epoch(model, 12)
    while True:
        dist.barrier()


if __name__ == "__main__":
    main()
