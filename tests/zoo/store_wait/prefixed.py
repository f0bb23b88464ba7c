# SPDX-License-Identifier: Apache-2.0
"""Rank 0 leaves out a key of a PrefixStore in one step; the others wait for it."""
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


class Handshake:
    def __init__(self, base, name):
        self.store = dist.PrefixStore(name, base)

    def publish(self, step):
        self.store.set(f"plan/{step}", str(step))  # CULPRIT

    def fetch(self, step):
        return self.store.get(f"plan/{step}")


def main():
    dist.init_process_group("gloo", timeout=timedelta(hours=1))
    plans = Handshake(dist.distributed_c10d._get_default_store(), "schedule")
    print("READY", flush=True)
    step = 0
    while True:
        if dist.get_rank() == 0:
            if healthy or step != 3:
                plans.publish(step)
        else:
            plans.fetch(step)
        dist.all_reduce(torch.ones(1))
        step += 1
        time.sleep(0.02)


main()
