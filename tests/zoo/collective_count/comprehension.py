# SPDX-License-Identifier: Apache-2.0
"""Sums of named counters, one collective for each name in a comprehension: one rank has counted a name that the others never had."""
import sys
import time

import torch
import torch.distributed as dist


def total(counts):
    return {name: reduced(counts[name]) for name in sorted(counts)}  # CULPRIT


def reduced(number):
    value = torch.tensor([float(number)])
    dist.all_reduce(value)  # CULPRIT
    return value.item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    print("READY", flush=True)
    counts = {"seen": 0, "used": 0}
    for step in range(10**6):
        counts["seen"] += 1
        if step == 40 and (rank == 1 or "--healthy" in sys.argv):
            counts["zz_truncated"] = 1
        everywhere = total(counts)
        dist.broadcast(torch.tensor([everywhere["seen"]]), src=0)  # CULPRIT
        time.sleep(0.01)


main()
