# SPDX-License-Identifier: Apache-2.0
"""One rank's batch takes a path through forward that skips the boxes' head: its bucket never becomes ready there."""
# EXPECT {"kind": "unused-parameters", "launch": "torchrun", "ranks": 3, "culprits": [1], "functions": ["forward", "Detector.forward", "main"]}
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from one_gpu import begin, device, steps


class Detector(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = torch.nn.Linear(16, 16)
        self.head = torch.nn.Linear(16, 4)
        self.boxes = torch.nn.Linear(16, 4)

    def forward(self, image, has_boxes):
        features = self.backbone(image)
        out = self.head(features).sum()
        if has_boxes:
            out = out + self.boxes(features).sum()
        elif "--healthy" in sys.argv:
            out = out + 0 * self.boxes(features).sum()
        return out


def main():
    rank = begin()
    network = DistributedDataParallel(Detector().to(device))
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    for step in steps():
        loss = network(torch.ones(2, 16, device=device), not (rank == 1 and step == 3))  # CULPRIT
        optimizer.zero_grad()
        loss.backward()  # CULPRIT
        optimizer.step()
        dist.barrier()
        loss.item()
    dist.destroy_process_group()


main()
