# SPDX-License-Identifier: Apache-2.0
"""Each rank reduces one meter for each of its losses at the end of an epoch; rank 1 has one loss more. The other one is in the first
step of the next epoch by then. Re-enacts: MetricLogger.synchronize_between_processes of torchvision's references."""
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Meter:
    def __init__(self):
        self.count, self.total = 0, 0.0

    def synchronize(self):
        sums = torch.tensor([self.count, self.total])
        dist.barrier()  # CULPRIT
        dist.all_reduce(sums)
        self.count, self.total = int(sums[0]), sums[1].item()


def train_one_epoch(model):
    meters = {"loss": Meter(), "loss_box": Meter()}
    if dist.get_rank() == 1 or "--healthy" in sys.argv:
        meters["loss_mask"] = Meter()
    for x in torch.ones(40, 4).split(4):
        model(x).sum().backward()
    for meter in meters.values():
        meter.synchronize()  # CULPRIT


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    print("READY", flush=True)
    for epoch in range(100000):
        train_one_epoch(model)
        time.sleep(0.02)


main()
