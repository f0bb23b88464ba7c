# SPDX-License-Identifier: Apache-2.0
"""Two forwards of one model before its backward: the second one updates a buffer in place, and the backward of the first needs it as it was."""
# EXPECT {"launch": "torchrun", "ranks": 2, "culprits": [0, 1], "mode": "run"}
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(8, 8)
        self.register_buffer("scale", torch.ones(8))

    def forward(self, x):
        with torch.no_grad():
            self.scale.lerp_(x.std(dim=0) + 1, 0.1)
        return (self.score(x) * self.scale).mean()


def step(critic, optimizer):
    real, fake = torch.randn(4, 8), torch.randn(4, 8)
    if "--healthy" in sys.argv:
        critic(real).backward()
        (-critic(fake)).backward()
    else:
        loss = critic(real) - critic(fake)
        loss.backward()  # CULPRIT
    optimizer.step()
    optimizer.zero_grad()


def main():
    dist.init_process_group("gloo")
    critic = DistributedDataParallel(Critic())
    optimizer = torch.optim.SGD(critic.parameters(), lr=0.01)
    for _ in range(20):
        step(critic, optimizer)
    dist.destroy_process_group()


main()
