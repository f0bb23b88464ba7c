# SPDX-License-Identifier: Apache-2.0
"""Early stopping by each rank's own validation loss: rank 1 leaves the loop over epochs while rank 0 is in the first step of the next one.
Both made equally many steps, and no collective stands between two epochs."""
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

HEALTHY = "--healthy" in sys.argv


class Trainer:
    def __init__(self):
        self.model = DistributedDataParallel(torch.nn.Linear(4, 1))
        self.should_stop, self.best, self.bad = False, float("inf"), 0

    def validate(self, epoch):
        loss = torch.tensor(1 / (1 + epoch) if HEALTHY or dist.get_rank() == 0 or epoch < 4 else 1.0)
        if HEALTHY:
            dist.all_reduce(loss)
        return loss.item()

    def watch(self, loss):
        self.bad = 0 if loss < self.best else self.bad + 1
        self.best = min(self.best, loss)
        self.should_stop = self.bad >= 3

    def fit(self):
        for epoch in range(100000):
            for x in torch.ones(20, 4).split(4):
                self.model(x).sum().backward()
            self.watch(self.validate(epoch))
            if epoch == 0:
                print("READY", flush=True)
            if self.should_stop:  # CULPRIT
                break
            time.sleep(0.02)
        self.save()  # CULPRIT

    def save(self):
        dist.barrier()  # CULPRIT


dist.init_process_group("gloo")
Trainer().fit()
