# SPDX-License-Identifier: Apache-2.0
"""Each rank reduces one tensor per key of its own dictionary, and the keys differ."""
import sys
import time

import torch
import torch.distributed as dist


def reduce_losses(losses):
    for name in sorted(losses):
        dist.all_reduce(losses[name])  # CULPRIT


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for step in range(100000):
        losses = {"cls": torch.ones(1), "box": torch.ones(1)}
        if rank == 1 or "--healthy" in sys.argv:
            losses["mask"] = torch.ones(1)
        if step == 0:
            print("READY", flush=True)
        reduce_losses(losses)
        dist.barrier()
        time.sleep(0.02)


main()
