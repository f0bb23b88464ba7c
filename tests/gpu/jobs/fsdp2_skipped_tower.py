# SPDX-License-Identifier: Apache-2.0
"""FSDP2: a batch without images lets rank 1 skip a sharded tower, whose parameters the others gather."""
# EXPECT {"kind": "skipped-sharded-module", "launch": "torchrun", "ranks": 2, "culprits": [1], "also": ["divergent-branch", "mismatched-shape", "mismatched-op"], "functions": ["TwoTowers.forward", "forward", "main"], "gloo": ["run"]}
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

from one_gpu import begin, device, steps


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.text, self.image, self.head = nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 8)

    def forward(self, text, image):
        features = self.text(text)
        if image is not None:  # CULPRIT
            features = features + self.image(image)  # CULPRIT
        return self.head(features)


def main():
    rank = begin()
    network = TwoTowers().to(device)
    for tower in (network.text, network.image, network.head):
        fully_shard(tower)
    fully_shard(network)
    for step in steps():
        empty = rank == 1 and step == 4 and "--healthy" not in sys.argv
        loss = network(torch.ones(4, 64, device=device), None if empty else torch.ones(4, 64, device=device)).sum()
        loss.backward()  # CULPRIT
        loss.item()
    dist.destroy_process_group()


main()
