# SPDX-License-Identifier: Apache-2.0
"""A batch that does not fit raises on rank 1; the except skips it there, and every later backward pairs with one of a step before.
Re-enacts: "CUDA out of memory: skip the batch" round the step of a DistributedDataParallel model."""
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

HEALTHY = "--healthy" in sys.argv


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 2)

    def forward(self, x):
        if x.shape[0] > 64:
            raise RuntimeError("out of memory")
        return self.layer(x)


def batches(rank):
    for i in range(10**6 if HEALTHY else 60):
        yield torch.randn(100 if i == 13 and (rank == 1 or HEALTHY) else 4, 8)


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(Net())
    skipped = 0
    print("READY", flush=True)
    for i, x in enumerate(batches(dist.get_rank())):
        try:
            model(x).sum().backward()
        except RuntimeError as e:  # CULPRIT
            if "out of memory" not in str(e):
                raise
            skipped += 1
            continue
        if i % 10 == 9:
            dist.all_gather_object([None] * dist.get_world_size(), skipped)  # CULPRIT
        time.sleep(0.01)
    dist.barrier()
    dist.destroy_process_group()


main()
