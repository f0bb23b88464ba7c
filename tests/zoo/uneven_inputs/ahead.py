# SPDX-License-Identifier: Apache-2.0
"""Looked at while it still trains: rank 1's own sampler strides without padding, so that it has one batch less, and every rank will stand in
backward or evaluate half a minute later. Healthy: DistributedSampler pads."""
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Sampler, TensorDataset


class Strided(Sampler):
    def __init__(self, dataset, rank, world):
        self.indices = range(rank, len(dataset), world)

    def __iter__(self):
        return iter(self.indices)

    def __len__(self):
        return len(self.indices)


def evaluate():
    correct = torch.tensor([3.0])
    dist.all_reduce(correct)
    return correct


def train(model, loader, optimizer):
    for step, (batch,) in enumerate(loader):  # CULPRIT
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        if step == 2:
            print("READY", flush=True)
        time.sleep(0.1)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    dataset = TensorDataset(torch.ones(4 * 2 * 150 + 1, 4))
    sampler = DistributedSampler(dataset) if "--healthy" in sys.argv else Strided(dataset, rank, world)
    loader = DataLoader(dataset, batch_size=4, sampler=sampler)
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for epoch in range(2):
        train(model, loader, optimizer)
        evaluate()  # CULPRIT


main()
