# SPDX-License-Identifier: Apache-2.0
"""Gradients are reduced when a rank has seen enough samples of its own; the context that decides it is made by calling an object."""
import contextlib
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

HEALTHY = "--healthy" in sys.argv


class Budget:
    def __init__(self, net, samples):
        self.net, self.samples, self.seen = net, samples, 0

    @contextlib.contextmanager
    def __call__(self, part):
        self.seen += len(part)
        if self.seen >= self.samples:  # CULPRIT
            self.seen = 0
            yield
        else:
            with self.net.no_sync():
                yield


def parts(rank, count):
    sizes = [4, 4, 4] if rank == 1 and not HEALTHY else [8, 8, 4]
    for number in range(count):
        yield torch.randn(sizes[number % 3], 4)


def main():
    dist.init_process_group("gloo")
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    budget = Budget(net, samples=12)
    print("READY", flush=True)
    for part in parts(dist.get_rank(), 10**6 if HEALTHY else 60):
        with budget(part):
            net(part).sum().backward()
        time.sleep(0.01)
    dist.barrier()  # CULPRIT
    dist.destroy_process_group()


main()
