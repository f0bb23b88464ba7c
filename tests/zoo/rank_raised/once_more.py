# SPDX-License-Identifier: Apache-2.0
"""A helper calls a function again after an OSError; the function's reduction had finished before its own disk was full on rank 2."""
import sys
import time

import torch
import torch.distributed as dist

HEALTHY = "--healthy" in sys.argv


def once_more(function, *values):
    left = 3
    while left:
        try:
            return function(*values)
        except OSError:
            left -= 1
            time.sleep(0.05)
    return None


class Notes:
    def __init__(self, rank):
        self.rank, self.count = rank, 0

    def keep(self, value):
        self.count += 1
        if self.count == 6 and self.rank == 2 and not HEALTHY:
            raise OSError(28, "No space left on device")
        return value

    def summary(self, loss):
        dist.all_reduce(loss)  # CULPRIT
        return self.keep(loss.sum().item())


def main():
    dist.init_process_group("gloo")
    notes = Notes(dist.get_rank())
    print("READY", flush=True)
    for step in range(10**6):
        dist.broadcast(torch.ones(4), src=0)
        if step % 4 == 3:
            once_more(notes.summary, torch.ones(4))
        time.sleep(0.01)


main()
