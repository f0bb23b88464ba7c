# SPDX-License-Identifier: Apache-2.0
"""Rank 0 alone validates through the wrapped model; the job runs on off by one and ends with "Connection closed by peer"."""
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

healthy = "--healthy" in sys.argv


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.bn = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 10)

    def forward(self, x):
        return self.fc(self.bn(self.conv(x)).relu().mean((2, 3)))


@torch.no_grad()
def validate(model, batches):
    correct = 0
    for _ in range(batches):
        out = model(torch.randn(4, 3, 8, 8))  # CULPRIT
        correct += out.argmax(1).eq(0).sum().item()
    return correct


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DDP(Net())
    opt = torch.optim.SGD(model.parameters(), 0.01)
    print("READY", flush=True)
    for epoch in range(3):
        model.train()
        for _ in range(4):
            loss = model(torch.randn(4, 3, 8, 8)).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            model.eval()
            validate(model.module if healthy else model, 5)
    dist.destroy_process_group()


main()
