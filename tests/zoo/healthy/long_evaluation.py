# SPDX-License-Identifier: Apache-2.0
"""Rank 0 evaluates for many seconds, the other waits at the barrier."""
import os
import sys
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


def evaluate():
    total, end = 0, time.time() + 9
    while time.time() < end:
        total += sum(i * i for i in range(20000))
    return total


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    for epoch in range(100):
        dist.all_reduce(torch.ones(8))
        if dist.get_rank() == 0:
            evaluate()
        dist.barrier()


main()
