# SPDX-License-Identifier: Apache-2.0
"""A compiled model under DDP: rank 1 finds that its own loss no longer falls and leaves the loop; the others do the next step."""
# EXPECT {"kind": "divergent-branch", "launch": "torchrun", "ranks": 2, "culprits": [1], "also": ["uneven-inputs", "collective-count"], "functions": ["main", "train"], "gloo": ["run"]}
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from one_gpu import NCCL, begin, device, model, steps


class Patience:
    def __init__(self, scale):
        self.scale, self.best = scale, float("inf")

    def exhausted(self, loss):
        stopped = loss * self.scale > self.best
        self.best = min(self.best, loss)
        return stopped


def train(network, patience):
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    for step in steps():
        loss = network(torch.full((8, 64), 0.01, device=device)).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step > 4 and patience.exhausted(loss.item()):  # CULPRIT
            break


def main():
    rank = begin()
    network = torch.compile(DistributedDataParallel(model()), backend="inductor" if NCCL else "eager")
    train(network, Patience(1e9 if rank == 1 and "--healthy" not in sys.argv else 1e-9))
    counted = torch.ones(1, device=device)
    dist.all_reduce(counted)
    counted.item()
    dist.destroy_process_group()


main()
