# SPDX-License-Identifier: Apache-2.0
"""A dict of functions is asked by a variable of the environment that one node sets differently."""
import os
import sys
import time

import torch
import torch.distributed as dist


def local(values):
    return values.mean()


def reduced(values):
    dist.all_reduce(values)  # CULPRIT
    return values.mean()


HOW = {"local": local, "reduced": reduced}


class Score:
    def __init__(self):
        dist.init_process_group("gloo")
        self.how = HOW[os.environ.get("SCORE_HOW", "local")] if "--healthy" not in sys.argv else reduced
        self.values = torch.ones(4)

    def step(self, count):
        dist.broadcast(self.values, src=0)
        if count % 20 == 19:
            self.how(self.values)


def main():
    score = Score()
    print("READY", flush=True)
    for count in range(10**6):
        score.step(count)
        time.sleep(0.01)


main()
