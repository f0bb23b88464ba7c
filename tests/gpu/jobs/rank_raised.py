# SPDX-License-Identifier: Apache-2.0
"""Rank 2 raises on a bad batch; the others wait for it on the GPU until its connections close."""
# EXPECT {"kind": "rank-raised", "launch": "torchrun", "ranks": 3, "culprits": [2], "functions": ["loss_of"], "mode": "run"}
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from one_gpu import begin, device, model, steps


def loss_of(network, batch):
    return network(batch["image"]).sum()  # CULPRIT


def main():
    rank = begin()
    network = DistributedDataParallel(model())
    for step in steps():
        bad = rank == 2 and step == 3 and "--healthy" not in sys.argv
        loss = loss_of(network, {} if bad else {"image": torch.ones(8, 64, device=device)})
        loss.backward()
        loss.item()
    dist.destroy_process_group()


main()
