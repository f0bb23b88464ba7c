# SPDX-License-Identifier: Apache-2.0
"""The kernel kills rank 1 in the middle of a step."""
# EXPECT {"kind": "dead-rank", "launch": "torchrun", "ranks": 3, "culprits": [1], "location": false, "mode": "run"}
import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from one_gpu import begin, device, model, steps


def main():
    rank = begin()
    network = DistributedDataParallel(model())
    for step in steps():
        loss = network(torch.ones(8, 64, device=device)).sum()
        if rank == 1 and step == 3 and "--healthy" not in sys.argv:
            os.kill(os.getpid(), signal.SIGKILL)
        loss.backward()
        loss.item()
    dist.destroy_process_group()


main()
