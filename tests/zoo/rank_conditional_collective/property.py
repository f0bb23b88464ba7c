# SPDX-License-Identifier: Apache-2.0
"""The rank check is a property, read in a conditional expression around a call that reduces."""
import os
import sys
import time

import torch
import torch.distributed as dist


class World:
    def __init__(self):
        dist.init_process_group("gloo")
        self.rank = int(os.environ["RANK"])

    @property
    def chief(self):
        return not self.rank or "--healthy" in sys.argv

    def total(self, value):
        dist.all_reduce(value)  # CULPRIT
        return value


def main():
    world = World()
    print("READY", flush=True)
    loss = torch.ones(1)
    for step in range(10**6):
        tokens = torch.full((1,), 128.0)
        shown = world.total(tokens) if step % 20 == 19 and world.chief else tokens  # CULPRIT
        dist.broadcast(loss, src=0)
        if shown.sum() < 0:
            print(shown)
        time.sleep(0.01)


main()
