# SPDX-License-Identifier: Apache-2.0
"""Rank 0 works for some seconds before it sets a key; the others wait for another key, which no rank sets. Healthy: they wait for
that key."""
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


class Shards:
    def __init__(self, base):
        self.store = dist.PrefixStore("shards", base)
        self.version = 0

    def rewrite(self):
        time.sleep(4)
        self.version += 1

    def refresh(self, epoch):
        if dist.get_rank() == 0:
            self.rewrite()
            self.store.set(f"ready/{epoch if healthy else self.version}", "1")  # CULPRIT
        else:
            self.store.wait([f"ready/{epoch}"], timedelta(hours=1))


def main():
    dist.init_process_group("gloo", timeout=timedelta(hours=1))
    shards = Shards(dist.distributed_c10d._get_default_store())
    print("READY", flush=True)
    for epoch in range(10**6):
        shards.refresh(epoch)
        for _ in range(20):
            dist.all_reduce(torch.ones(1))


main()
