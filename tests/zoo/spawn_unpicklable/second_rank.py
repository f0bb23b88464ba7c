# SPDX-License-Identifier: Apache-2.0
"""The launcher has started rank 0 and fails on rank 1, which gets a lambda; rank 0 waits at the rendezvous, the launcher for rank 0."""
import os
import sys
import time

import torch.distributed as dist
import torch.multiprocessing as mp

HEALTHY = "--healthy" in sys.argv


def train(rank, transform):
    print("READY", flush=True)
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:" + os.environ["ZOO_PORT"], rank=rank, world_size=2)
    while True:
        dist.barrier()
        time.sleep(0.1)


def augment(x):
    return x


def main():
    context = mp.get_context("spawn")
    transforms = [augment, augment if HEALTHY else (lambda x: x + 1)]
    for rank in range(2):
        context.Process(target=train, args=(rank, transforms[rank])).start()  # CULPRIT


if __name__ == "__main__":
    main()
