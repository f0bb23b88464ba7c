# SPDX-License-Identifier: Apache-2.0
"""One rank has another method put into its object; the line that calls it is the same everywhere."""
import sys
import time

import torch
import torch.distributed as dist


class Model:
    def __init__(self):
        self.weights = torch.ones(4)

    def check(self):
        return float(self.weights.sum())

    def step(self, count):
        dist.all_reduce(self.weights)
        self.weights.fill_(1.0)
        if count % 20 == 19:
            self.check()


def compared(model):
    def check():
        dist.broadcast(model.weights, src=0)  # CULPRIT
        return float(model.weights.sum())

    return check


def main():
    dist.init_process_group("gloo")
    model = Model()
    if dist.get_rank() == 0 or "--healthy" in sys.argv:
        model.check = compared(model)
    print("READY", flush=True)
    for count in range(10**6):
        model.step(count)
        time.sleep(0.01)


main()
