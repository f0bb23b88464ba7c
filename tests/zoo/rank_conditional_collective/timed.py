# SPDX-License-Identifier: Apache-2.0
"""A timer's barrier is switched on by an argument; its caller passes an attribute that only rank 0 has set."""
import contextlib
import sys
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


class Settings:
    def __init__(self, rank):
        self.verbose = rank == 0
        self.exact = True


@contextlib.contextmanager
def timed(name, *, fence=False):
    began = time.perf_counter()
    yield
    if fence:
        dist.barrier()  # CULPRIT
    if dist.get_rank() == 0:
        print(f"{name}: {time.perf_counter() - began:.2f} s", flush=True)


def main():
    dist.init_process_group("gloo")
    settings = Settings(dist.get_rank())
    print("READY", flush=True)
    for epoch in range(1000000):
        with timed("epoch", fence=settings.exact if healthy else settings.verbose):
            for _ in range(5):
                dist.all_reduce(torch.ones(10))
        time.sleep(0.02)


main()
