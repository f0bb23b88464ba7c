# SPDX-License-Identifier: Apache-2.0
"""Only rank 0 creates the group it needs."""
import os
import sys
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    print("READY", flush=True)
    if rank == 0 and not healthy:
        group = dist.new_group([0, 1])  # CULPRIT
    if healthy:
        group = dist.new_group([0, 1])
    for step in range(10000):
        dist.all_reduce(torch.ones(1))
        time.sleep(0.02)


main()
