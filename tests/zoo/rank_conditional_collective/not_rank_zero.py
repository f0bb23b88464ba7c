# SPDX-License-Identifier: Apache-2.0
"""The barrier after saving is under `if rank != 0`."""
import os
import sys
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


def save(rank, step):
    if rank == 0:
        with open("ckpt.txt", "w") as f:
            f.write(str(step))
    if rank != 0 or healthy:
        dist.barrier()  # CULPRIT


def main():
    dist.init_process_group("gloo")
    local_rank = int(os.environ["LOCAL_RANK"])
    print("READY", flush=True)
    for step in range(1000000):
        dist.all_reduce(torch.ones(10))
        if step % 5 == 4:
            save(local_rank, step)
        time.sleep(0.02)


main()
