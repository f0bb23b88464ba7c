# SPDX-License-Identifier: Apache-2.0
"""Inside the guard, rank 0 and the others wait at different lines of one context; rank 2 came late, saw the finished index, and entered neither.
Re-enacts: `main_process_first` behind a check for a cached file."""
import contextlib
import os
import sys
import time

import torch
import torch.distributed as dist


@contextlib.contextmanager
def writer_first():
    writer = dist.get_rank() == 0
    if not writer:
        dist.barrier()
    yield writer
    if writer:
        dist.barrier()


class Index:
    def __init__(self, path):
        self.path = path

    @property
    def complete(self):
        return os.path.exists(self.path)

    def ensure(self):
        if not self.complete or "--healthy" in sys.argv:  # CULPRIT
            with writer_first() as writer:
                if writer:
                    time.sleep(0.5)
                    open(self.path, "w").close()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    index = Index(f"index-{os.environ['MASTER_PORT']}.bin")
    dist.barrier()
    if rank == 2:
        time.sleep(1.5)
    print("READY", flush=True)
    index.ensure()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))  # CULPRIT
    while True:
        model(torch.ones(2, 8)).sum().backward()
        time.sleep(0.02)


main()
