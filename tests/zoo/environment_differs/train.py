# SPDX-License-Identifier: Apache-2.0
"""Rank 2 was started with an old WORLD_SIZE: it counts two ranks, the others three, and they wait for one another at the rendezvous."""
import torch
import torch.distributed as dist


def main():
    print("READY", flush=True)
    dist.init_process_group("gloo")  # CULPRIT
    while True:
        dist.all_reduce(torch.ones(1))


main()
