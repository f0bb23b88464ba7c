# SPDX-License-Identifier: Apache-2.0
"""Scores by class are averaged one by one; rank 1 has seen a class that the others have not. No loader is involved."""
import sys
import time

import torch
import torch.distributed as dist


def average(scores):
    for k in sorted(scores):
        dist.all_reduce(scores[k])  # CULPRIT


def main():
    dist.init_process_group("gloo")
    for step in range(100000):
        scores = {"car": torch.ones(1), "dog": torch.ones(1)}
        if dist.get_rank() == 1 or "--healthy" in sys.argv:
            scores["fox"] = torch.ones(1)
        if step == 0:
            print("READY", flush=True)
        average(scores)
        dist.barrier()
        time.sleep(0.02)


main()
