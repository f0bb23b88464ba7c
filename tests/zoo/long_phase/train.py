# SPDX-License-Identifier: Apache-2.0
"""Rank 0 tokenises for a long time while the others wait in a barrier: slow, not hung."""
import sys
import time

import torch
import torch.distributed as dist


def tokenize():
    words = 0
    end = time.time() + 100
    while time.time() < end:
        words += sum(len(str(i)) for i in range(1000))
    return words


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    if dist.get_rank() == 0:
        tokenize()  # CULPRIT
    dist.barrier()
    dist.all_reduce(torch.ones(1))


main()
