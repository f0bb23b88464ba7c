# SPDX-License-Identifier: Apache-2.0
"""Two of four ranks make a group of their own; in the next new_group, which all call, they count one group more than the others."""
import sys
import time

import torch
import torch.distributed as dist


def make_group(rank):
    if rank in (0, 1) or "--healthy" in sys.argv:
        return dist.new_group([0, 1])  # CULPRIT
    return None


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    dist.barrier()
    print("READY", flush=True)
    make_group(rank)
    everybody = dist.new_group()
    while True:
        dist.all_reduce(torch.ones(1), group=everybody)
        time.sleep(0.02)


main()
