# SPDX-License-Identifier: Apache-2.0
"""Both ranks receive before they send; NCCL runs the two on one stream, one after the other."""
# EXPECT {"kind": "p2p-deadlock", "launch": "torchrun", "ranks": 2, "culprits": [0, 1], "functions": ["exchange"]}
import sys

import torch
import torch.distributed as dist

from one_gpu import begin, device, steps


def exchange(value, peer, send_first):
    got = torch.empty_like(value)
    if send_first:
        dist.send(value, peer)
        dist.recv(got, peer)
    else:
        dist.recv(got, peer)  # CULPRIT
        dist.send(value, peer)
    return got.sum().item()


def main():
    rank = begin()
    for step in steps():
        exchange(torch.ones(1024, device=device), 1 - rank, rank == 0 and (step < 4 or "--healthy" in sys.argv))
    dist.destroy_process_group()


main()
