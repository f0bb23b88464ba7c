# SPDX-License-Identifier: Apache-2.0
"""Rank 0 validates alone, and NCCL's watchdog ends the job after its own limit, before anybody looks."""
# EXPECT {"kind": "rank-conditional-collective", "launch": "torchrun", "ranks": 2, "culprits": [0], "also": ["extra-rank-in-collective", "mismatched-op", "mismatched-shape"], "functions": ["validate", "main"], "mode": "run", "gloo": []}
import datetime
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from one_gpu import device, model, steps


def validate(metric):
    total = metric.repeat(4096)
    dist.all_reduce(total)  # CULPRIT
    return total.mean().item()


def main():
    rank = int(os.environ["RANK"])
    os.environ["NCCL_HOSTID"] = f"host-{rank}"
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=8))
    network = DistributedDataParallel(model())
    for step in steps():
        loss = network(torch.ones(8, 64, device=device)).sum()
        loss.backward()
        if step > 3 and (rank == 0 or "--healthy" in sys.argv):
            validate(loss.detach())
        loss.item()
    dist.destroy_process_group()


main()
