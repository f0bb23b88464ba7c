# SPDX-License-Identifier: Apache-2.0
"""One rank's batch takes a path through forward that skips the auxiliary head: its gradients never become ready there,
and the other ranks wait in backward for that bucket."""
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


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
    dist.init_process_group("gloo")
    model = DistributedDataParallel(Detector())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(100000):
        has_boxes = not (step == 3 and dist.get_rank() == 1)
        if step == 3:
            print("READY", flush=True)
        loss = model(torch.ones(2, 16), has_boxes)  # CULPRIT
        optimizer.zero_grad()
        loss.backward()  # CULPRIT
        optimizer.step()
        dist.barrier()
        time.sleep(0.02)


main()
