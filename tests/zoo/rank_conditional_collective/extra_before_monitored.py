# SPDX-License-Identifier: Apache-2.0
"""Rank 1 makes one all_reduce more before a monitored_barrier."""
import os
import sys
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


from datetime import timedelta


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    print("READY", flush=True)
    for step in range(100000):
        dist.all_reduce(torch.ones(1))
        if step == 5 and rank == 1 and not healthy:
            dist.all_reduce(torch.ones(1))  # CULPRIT
        dist.monitored_barrier(timeout=timedelta(seconds=60))
        time.sleep(0.02)


main()
