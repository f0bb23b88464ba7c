# SPDX-License-Identifier: Apache-2.0
"""Each rank decides on its own loss whether to stop; one stops and evaluates, the others train on.
Re-enacts: early stopping on an unreduced metric."""
import sys
import time

import torch
import torch.distributed as dist

HEALTHY = "--healthy" in sys.argv


def evaluate():
    score = torch.ones(2)
    dist.all_gather([torch.zeros(2) for _ in range(dist.get_world_size())], score)  # CULPRIT
    return score


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    losses = torch.linspace(1.0, 0.5, 10) + (0.3 if dist.get_rank() == 1 else 0.0)
    best = 2.0
    grads = torch.ones(100)
    for step in range(100000):
        dist.all_reduce(grads)
        loss = losses[step].item() if step < 10 else 0.4
        if HEALTHY:
            time.sleep(0.02)
            decision = torch.tensor([loss])
            dist.all_reduce(decision, op=dist.ReduceOp.MAX)
            loss = decision.item()
        if step == 5:
            print("READY", flush=True)
        if step >= 5 and loss > 0.9:
            evaluate()
        best = min(best, loss)


main()
