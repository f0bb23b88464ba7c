# SPDX-License-Identifier: Apache-2.0
"""A checkpoint is due by each rank's own clock; rank 0's runs ahead and gathers alone, in a job of two ranks.
Re-enacts: checkpoints every N minutes of wall-clock time."""
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Checkpointer:
    def __init__(self, period):
        self.period, self.last = period, time.monotonic()

    def maybe_save(self, step):
        now = time.monotonic()
        if now - self.last > self.period:  # CULPRIT
            self.save(step)
            self.last = now

    def save(self, step):
        shards = [None] * dist.get_world_size()
        dist.all_gather_object(shards, {"step": step})  # CULPRIT


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(10, 1))
    period = 1e9 if "--healthy" in sys.argv else 1.0 + 30 * dist.get_rank()
    checkpointer = Checkpointer(period)
    print("READY", flush=True)
    for step in range(10**9):
        model(torch.randn(2, 10)).sum().backward()
        checkpointer.maybe_save(step)
        time.sleep(0.01)


main()
