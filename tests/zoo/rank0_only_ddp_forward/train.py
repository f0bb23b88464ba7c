# SPDX-License-Identifier: Apache-2.0
"""Rank 0 evaluates through the DDP-wrapped model: its forward broadcasts the buffers and waits for ranks that train on."""
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def evaluate(model):
    with torch.no_grad():
        return model(torch.randn(8, 4)).mean().item()  # CULPRIT


def main():
    dist.init_process_group("gloo")
    network = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(100000):
        loss = model(torch.randn(8, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 3:
            print("READY", flush=True)
        if step % 4 == 3:
            if dist.get_rank() == 0:
                evaluate(model.module if "--healthy" in sys.argv else model)
            dist.barrier()
        time.sleep(0.02)


main()
