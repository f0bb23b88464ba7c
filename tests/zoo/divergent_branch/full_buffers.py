# SPDX-License-Identifier: Apache-2.0
"""Each rank shares its counts when any of its buffers is full; one of rank 1's is full before those of the others."""
import sys
import time

import torch
import torch.distributed as dist

HEALTHY = "--healthy" in sys.argv


class Buffers:
    def __init__(self, rank):
        self.rank, self.counts = rank, [0, 0, 0]

    def add(self, step):
        self.counts[step % 3] += 3 if self.rank == 1 and step > 9 else 1

    def share(self):
        dist.all_gather_object([None] * dist.get_world_size(), self.counts)  # CULPRIT


def anywhere(full):
    flag = torch.tensor([float(full)])
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return bool(flag.item())


def main():
    dist.init_process_group("gloo")
    buffers, gradient = Buffers(dist.get_rank()), torch.ones(64)
    print("READY", flush=True)
    for step in range(10**6):
        dist.all_reduce(gradient)
        buffers.add(step)
        if HEALTHY:
            if anywhere(any(count > 12 for count in buffers.counts)):
                buffers.share()
        elif any(count > 12 for count in buffers.counts):  # CULPRIT
            buffers.share()
        time.sleep(0.01)


main()
