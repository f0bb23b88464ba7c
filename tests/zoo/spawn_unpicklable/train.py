# SPDX-License-Identifier: Apache-2.0
"""mp.spawn is given a lambda; no child ever starts."""
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

healthy = "--healthy" in sys.argv


def real(rank, transform):
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:" + os.environ["ZOO_PORT"], rank=rank, world_size=2)
    dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()


def identity(x):
    return x


def main():
    transform = identity if healthy else (lambda x: x + 1)
    mp.spawn(real, args=(transform,), nprocs=2)  # CULPRIT


if __name__ == "__main__":
    main()
