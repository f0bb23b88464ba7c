# SPDX-License-Identifier: Apache-2.0
"""A block runs twice under reentrant checkpointing: in one backward its parameters are ready twice."""
# EXPECT {"launch": "torchrun", "ranks": 2, "culprits": [0, 1], "mode": "run"}
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Linear(4, 4)

    def forward(self, x):
        reentrant = "--healthy" not in sys.argv
        for _ in range(2):
            x = checkpoint(self.block, x, use_reentrant=reentrant)
        return x


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(Encoder(), find_unused_parameters=True)
    x = torch.randn(8, 4, requires_grad=True)
    model(x).sum().backward()  # CULPRIT
    # torch 2.13 can abort at exit: gloo's worker thread frees the last Work of a checkpoint's backward with the GIL, while Python ends
    # (without ddpdoctor: 9 of 30 runs of the healthy twin). A second's rest lets the thread finish first (0 of 24).
    time.sleep(1)
    dist.destroy_process_group()


main()
