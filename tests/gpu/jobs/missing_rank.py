# SPDX-License-Identifier: Apache-2.0
"""One rank polls for a file that nobody writes; the others stand in the reduction of DDP's gradients."""
# EXPECT {"kind": "missing-rank", "launch": "torchrun", "ranks": 3, "culprits": [1], "also": ["io-stall"]}
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from one_gpu import begin, device, model, steps


def wait_for_config():
    while not os.path.exists("config.json"):
        time.sleep(0.5)  # CULPRIT


def main():
    rank = begin()
    network = DistributedDataParallel(model())
    for step in steps():
        if rank == 1 and step == 3 and "--healthy" not in sys.argv:
            wait_for_config()
        loss = network(torch.ones(8, 64, device=device)).sum()
        loss.backward()
        loss.item()
    dist.destroy_process_group()


main()
