# SPDX-License-Identifier: Apache-2.0
"""Neighbours exchange halos, and both receive before they send: each waits for the other."""
import sys
import time

import torch
import torch.distributed as dist


def exchange(rank):
    peer = 1 - rank
    mine, theirs = torch.full((4,), float(rank)), torch.zeros(4)
    if "--healthy" in sys.argv and rank == 0:
        dist.send(mine, peer)
        dist.recv(theirs, peer)
    else:
        dist.recv(theirs, peer)  # CULPRIT
        dist.send(mine, peer)


def main():
    dist.init_process_group("gloo")
    dist.barrier()
    print("READY", flush=True)
    while True:
        exchange(dist.get_rank())
        time.sleep(0.02)


main()
