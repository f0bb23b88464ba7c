# SPDX-License-Identifier: Apache-2.0
"""Only the members of a new group create it; the other ranks go on to their next collective."""
import sys
import time

import torch
import torch.distributed as dist


def make_groups(rank):
    if rank < 2 or "--healthy" in sys.argv:
        return dist.new_group([0, 1])  # CULPRIT
    return None


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    dist.barrier()
    print("READY", flush=True)
    group = make_groups(rank)
    everybody = dist.new_group()
    while True:
        dist.all_reduce(torch.ones(1), group=everybody)
        if rank < 2:
            dist.all_reduce(torch.ones(1), group=group)
        time.sleep(0.02)


main()
