# SPDX-License-Identifier: Apache-2.0
"""A batch with an exploding gradient is dropped before the gradients are exchanged, parameter by parameter, on one rank only."""
import sys
import time

import torch
import torch.distributed as dist

HEALTHY = "--healthy" in sys.argv


def exchange(params, world):
    for p in params:
        dist.all_reduce(p.grad)
        p.grad.div_(world)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    net = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Linear(4, 1))
    params = list(net.parameters())
    print("READY", flush=True)
    for step in range(10**6 if HEALTHY else 60):
        y = torch.randn(16, 1) * (1000 if step == 13 and (rank == 1 or HEALTHY) else 1)
        net.zero_grad()
        (net(torch.randn(16, 8)) - y).square().mean().backward()
        norm = torch.stack([p.grad.norm() for p in params]).norm()
        if norm > 100:  # CULPRIT
            continue
        exchange(params, world)
        if step % 20 == 19:
            dist.all_gather_object([None] * world, norm.item())  # CULPRIT
        time.sleep(0.01)
    dist.barrier()
    dist.destroy_process_group()


main()
