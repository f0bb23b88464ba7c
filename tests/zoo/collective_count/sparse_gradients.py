# SPDX-License-Identifier: Apache-2.0
"""Gradients are averaged by hand where there are any. Once rank 1 has a batch that needs both heads: one gradient more. The sizes are
alike, so that the calls pair up one by one for many steps, and only the end hangs: all went round the loop equally often."""
import sys

import torch
import torch.distributed as dist
from torch import nn

HEADS = ("left", "right")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({name: nn.Linear(6, 6, bias=False) for name in HEADS})

    def forward(self, x, names):
        return sum(self.heads[name](x) for name in names)


def average_gradients(model):
    for parameter in model.parameters():
        if parameter.grad is not None or "--healthy" in sys.argv:
            gradient = parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
            dist.all_reduce(gradient)  # CULPRIT
            parameter.grad = gradient / dist.get_world_size()


def main():
    dist.init_process_group("gloo")
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(120):
        names = HEADS if dist.get_rank() == 1 and step == 20 else HEADS[step % 2:][:1]
        optimizer.zero_grad(set_to_none=True)
        model(torch.randn(4, 6), names).square().mean().backward()
        average_gradients(model)
        optimizer.step()
        if step == 60:
            print("READY", flush=True)
    seen = [None] * dist.get_world_size()
    dist.all_gather_object(seen, step)
    while "--healthy" in sys.argv:
        dist.barrier()
        torch.randn(64, 64) @ torch.randn(64, 64)


main()
