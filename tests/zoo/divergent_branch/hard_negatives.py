# SPDX-License-Identifier: Apache-2.0
"""Each rank collects hard samples and shares them when it has enough: one of them is in an all_gather before the backward in which the
others wait for its gradients. Its reducer has announced that backward, and no parameter went unused."""
import sys

import torch
import torch.distributed as dist
from torch import nn


class Bank:
    def __init__(self, capacity):
        self.capacity, self.rows = capacity, []

    def offer(self, h, hard):
        self.rows.extend(h.detach()[:hard].unbind(0))

    def full(self):
        return len(self.rows) >= self.capacity

    def share(self):
        rows = torch.stack(self.rows[: self.capacity])
        self.rows = self.rows[self.capacity :]
        everyone = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
        dist.all_gather(everyone, rows)  # CULPRIT


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)))
    bank = Bank(20)
    print("READY", flush=True)
    for step in range(100000):
        h = model(torch.randn(8, 8))
        late = dist.get_rank() == 1 and step > 11 and "--healthy" not in sys.argv
        bank.offer(h, 2 if not late else 6)
        if bank.full():  # CULPRIT
            bank.share()
        h.square().mean().backward()


main()
