# SPDX-License-Identifier: Apache-2.0
"""The method is chosen by a name that is put together from the rank's task."""
import sys
import time

import torch
import torch.distributed as dist


class Node:
    def __init__(self, task):
        self.task = task
        self.values = torch.ones(4)

    def do_train(self):
        self.values.mul_(0.5)

    def do_score(self):
        dist.broadcast(self.values, src=0)  # CULPRIT

    def step(self, count):
        dist.all_reduce(self.values)
        if count % 20 == 19:
            getattr(self, f"do_{self.task}")()


def main():
    dist.init_process_group("gloo")
    number = dist.get_rank()
    node = Node("score" if number == dist.get_world_size() - 1 or "--healthy" in sys.argv else "train")
    print("READY", flush=True)
    for count in range(10**6):
        node.step(count)
        time.sleep(0.01)


main()
