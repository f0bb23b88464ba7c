# SPDX-License-Identifier: Apache-2.0
"""Rank 4, on the third node, calls broadcast where the others call all_reduce."""
# EXPECT {"kind": "mismatched-op", "culprits": [4], "hosts": ["node3"]}
import sys
import time

import torch
import torch.distributed as dist


def synchronise(stats):
    if stats.sum() > 100 and "--healthy" not in sys.argv:
        dist.broadcast(stats, src=0)  # CULPRIT
    else:
        dist.all_reduce(stats)


def main():
    dist.init_process_group("gloo")
    for step in range(100000):
        stats = torch.ones(16)
        if step == 3:
            print("READY", flush=True)
            if dist.get_rank() == 4:
                stats *= 50
        synchronise(stats)
        time.sleep(0.02)


main()
