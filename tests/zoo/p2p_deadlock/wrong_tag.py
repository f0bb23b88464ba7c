# SPDX-License-Identifier: Apache-2.0
"""From the fifth step on the sender counts its tags differently from the receiver."""
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
    x = torch.ones(4)
    for step in range(100000):
        if rank == 0:
            dist.send(x, 1, tag=step if step < 5 or healthy else step + 1)  # CULPRIT
        else:
            dist.recv(x, 0, tag=step)  # CULPRIT
        dist.barrier()
        time.sleep(0.02)


main()
