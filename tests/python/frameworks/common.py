# SPDX-License-Identifier: Apache-2.0
"""Shared by the scripts of the frameworks: a model whose ranks may differ, and the line that reports the healthy half as silent."""
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist

TIMEOUT = 2.0
STEPS = 4


class Network(torch.nn.Module):
    """In its third step, the healthy one computes for longer than the timeout; in the hung one a rank has a collective of its own."""

    def __init__(self, hangs):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
        self.hangs, self.seen = hangs, 0

    def forward(self, batch):
        self.seen += 1
        if self.seen == 3:
            if self.hangs:
                self.evaluate()
            else:
                time.sleep(TIMEOUT * 2)
        return self.layer(batch)

    def evaluate(self):
        if dist.get_rank() == 1:
            dist.barrier()  # CULPRIT


def data():
    return torch.utils.data.TensorDataset(torch.ones(2 * STEPS, 4))


def healthy_half_is_over(folder):
    """Every rank prints, in one write, how many reports there are; one step of each rank was longer than the timeout."""
    said = f"HEALTHY {len(list(Path(folder).rglob('report.json')))} reports, rank {os.environ.get('RANK')}\n"
    os.write(1, said.encode())
