# SPDX-License-Identifier: Apache-2.0
"""Ranks without results skip all_gather_object."""
import os
import sys
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


def share(rank, results, step):
    out = [None] * dist.get_world_size()
    if results:
        dist.all_gather_object(out, results)  # CULPRIT
    return out


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    print("READY", flush=True)
    documents = range(10**6)
    own = documents[rank::2]
    for step in range(100000):
        results = {"n": step} if healthy or step < 3 or own[step] % 2 == 0 else {}
        share(rank, results, step)
        dist.broadcast_object_list([step], 0)  # CULPRIT
        time.sleep(0.02)


main()
