# SPDX-License-Identifier: Apache-2.0
"""A function with @lru_cache broadcasts a mask; rank 1 has no kept mask for its batch of step 3 when the others have one.
Re-enacts: masks by bucket of lengths, cached on each rank by its own lengths."""
import functools
import sys
import time

import torch
import torch.distributed as dist


@functools.lru_cache(maxsize=64)  # CULPRIT
def mask(bucket):
    kept = (torch.rand(8) > 0.1).float()
    dist.broadcast(kept, src=0)  # CULPRIT
    return kept


def bucket_of(rank, step, healthy):
    other = rank == 1 and step == 3 and not healthy
    return 7 if other else step % 3


def main():
    dist.init_process_group("gloo")
    weight, healthy = torch.ones(8, requires_grad=True), "--healthy" in sys.argv
    print("READY", flush=True)
    for step in range(10**9):
        loss = (weight * mask(bucket_of(dist.get_rank(), step, healthy))).sum()
        loss.backward()
        dist.all_reduce(weight.grad)
        weight.grad = None
        time.sleep(0.05)


main()
