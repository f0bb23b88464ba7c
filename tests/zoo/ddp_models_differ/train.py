# SPDX-License-Identifier: Apache-2.0
"""One rank reads another list of layers to adapt from its own disk: DDP's constructor gets other parameters there, and gloo ends a rank."""
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def build(rank):
    net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
    adapted = [0] if rank == 1 and "--healthy" not in sys.argv else [0, 2]
    for i in adapted:
        net[i].weight = nn.Parameter(torch.zeros(16, 16, 1, 1))
    return net


class Squared(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return sum((p * p).sum() for p in self.net.parameters()) * x.sum()


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(Squared(build(dist.get_rank())))  # CULPRIT
    print("READY", flush=True)
    for _ in range(20):
        model(torch.ones(2)).backward()
        time.sleep(0.02)
    dist.destroy_process_group()


main()
