# SPDX-License-Identifier: Apache-2.0
"""Rank 0 runs a program that asks a question on standard input."""
import os
import sys
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


import subprocess


def ask(rank):
    if rank == 0 and not healthy:
        subprocess.run([sys.executable, "-c", "input('overwrite? ')"], stdout=subprocess.DEVNULL, stdin=subprocess.PIPE if False else None)  # CULPRIT


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    print("READY", flush=True)
    while True:
        ask(rank)
        dist.barrier()
        time.sleep(0.02)


main()
