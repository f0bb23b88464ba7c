# SPDX-License-Identifier: Apache-2.0
"""Rank 0 averages a metric with a collective that only it reaches: the call pairs with the others' next gradient reduction.
Re-enacts: a logging helper guarded by `if rank == 0` (the most reported cause)."""
import sys
import time

import torch
import torch.distributed as dist

HEALTHY = "--healthy" in sys.argv


def log_metrics(rank, step, loss):
    if rank == 0 or HEALTHY:
        losses = [torch.zeros(1) for _ in range(dist.get_world_size())]
        dist.all_gather(losses, torch.tensor([loss]))  # CULPRIT
        if rank == 0 and step % 50 == 0:
            print(f"step {step} loss {torch.cat(losses).mean().item():.3f}", flush=True)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = torch.nn.Linear(8, 8)
    for step in range(100000):
        loss = model(torch.ones(4, 8)).square().mean()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        if step == 3:
            print("READY", flush=True)
        if step >= 3:
            log_metrics(rank, step, float(loss))
        time.sleep(0.01)


main()
