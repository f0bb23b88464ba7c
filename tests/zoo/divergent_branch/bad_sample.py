# SPDX-License-Identifier: Apache-2.0
"""A helper catches the exception of a bad sample and returns None; its caller skips the step, on one rank only."""
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

HEALTHY = "--healthy" in sys.argv


class Step:
    def __init__(self, model):
        self.model = model

    def loss(self, x):
        try:
            return self.model(x).sum()
        except RuntimeError as e:  # CULPRIT
            print("bad sample:", e)
            return None

    def __call__(self, x):
        loss = self.loss(x)
        if loss is None:
            return
        loss.backward()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    step = Step(DistributedDataParallel(torch.nn.Linear(8, 2)))
    print("READY", flush=True)
    for i in range(10**6 if HEALTHY else 60):
        step(torch.randn(4, 7 if i == 13 and (rank == 1 or HEALTHY) else 8))
        if i % 10 == 9:
            dist.all_gather_object([None] * dist.get_world_size(), i)  # CULPRIT
        time.sleep(0.01)
    dist.barrier()
    dist.destroy_process_group()


main()
