# SPDX-License-Identifier: Apache-2.0
"""What runs at the end of an epoch was bound by functools.partial to one of two functions, by a test of the rank."""
import functools
import sys
import time

import torch
import torch.distributed as dist


def tell(prefix, values):
    return prefix + str(values.sum())


def collect(prefix, values):
    dist.broadcast(values, src=1)  # CULPRIT
    return tell(prefix, values)


class Epochs:
    def __init__(self, at_end):
        self.at_end = at_end
        self.values = torch.ones(4)

    def step(self, count):
        dist.all_reduce(self.values)
        self.values.fill_(1.0)
        if count % 20 == 19:
            self.at_end(self.values)


def main():
    dist.init_process_group("gloo")
    wide = dist.get_rank() == 1 or "--healthy" in sys.argv
    epochs = Epochs(functools.partial(collect if wide else tell, "sum "))
    print("READY", flush=True)
    for count in range(10**6):
        epochs.step(count)
        time.sleep(0.01)


main()
