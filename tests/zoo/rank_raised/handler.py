# SPDX-License-Identifier: Apache-2.0
"""A bad line raises on rank 1; its handler calls a barrier that the others never reach."""
import os
import sys
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


def parse(line, rank):
    return int(line)  # CULPRIT


def epoch(rank, step):
    try:
        parse("seven" if rank == 1 and step == 3 and not healthy else "7", rank)
    except ValueError as error:
        print("bad line", error, flush=True)
        dist.barrier()


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    for step in range(1000000):
        epoch(dist.get_rank(), step)
        dist.all_reduce(torch.ones(4))
        time.sleep(0.02)


main()
