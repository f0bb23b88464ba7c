# SPDX-License-Identifier: Apache-2.0
"""Layers are dropped at random, by random numbers that differ between ranks."""
import random
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

healthy = "--healthy" in sys.argv


class Encoder(nn.Module):
    def __init__(self, depth=6, drop=0.5):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(300, 300) for _ in range(depth))
        self.head = nn.Linear(300, 2)
        self.drop = drop

    def forward(self, x):
        for layer in self.layers:
            if random.random() < self.drop:
                continue  # CULPRIT
            x = x + layer(x).tanh()
        return self.head(x)


def main():
    dist.init_process_group("gloo")
    random.seed(dist.get_rank())
    model = DDP(Encoder(drop=0.0 if healthy else 0.5), bucket_cap_mb=0.1)
    opt = torch.optim.SGD(model.parameters(), 0.01)
    print("READY", flush=True)
    for step in range(100000):
        loss = model(torch.randn(4, 300)).square().mean()  # CULPRIT
        opt.zero_grad()
        loss.backward()  # CULPRIT
        opt.step()
        time.sleep(0.02)


main()
