# SPDX-License-Identifier: Apache-2.0
"""The losses of an epoch are a list of steps, and callbacks gather them; the stream of rank 1 drops its short documents and ends earlier."""
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset


class Documents(IterableDataset):
    def __init__(self, shortest, rank):
        self.shortest = shortest
        self.rank = rank

    def __iter__(self):
        for length in range(40):
            if self.rank == 0 or length >= self.shortest:
                yield torch.ones(4) * length


class MeanLoss:
    def at_end(self, losses):
        mean = losses.mean().reshape(1)
        dist.all_gather([torch.empty(1) for _ in range(dist.get_world_size())], mean)


class Trainer:
    def __init__(self, model, callbacks):
        self.model = model
        self.callbacks = callbacks

    def step(self, batch):
        loss = self.model(batch).sum()
        loss.backward()
        return loss.detach()

    def emit(self, losses):
        for callback in self.callbacks:
            callback.at_end(losses)

    def fit(self, batches):
        print("READY", flush=True)
        for epoch in range(10000):
            losses = [self.step(batch) for batch in batches]
            self.emit(torch.stack(losses))  # CULPRIT
            time.sleep(0.02)


def main():
    dist.init_process_group("gloo")
    shortest = 0 if "--healthy" in sys.argv else 12
    batches = DataLoader(Documents(shortest, dist.get_rank()), batch_size=4)
    Trainer(DistributedDataParallel(torch.nn.Linear(4, 1)), [MeanLoss()]).fit(batches)


main()
