# SPDX-License-Identifier: Apache-2.0
"""The rank check is in a decorator of the program, which gives its wrapper the name of the wrapped function."""
import functools
import sys
import time

import torch
import torch.distributed as dist

HEALTHY = "--healthy" in sys.argv


def foremost(function):
    @functools.wraps(function)
    def inner(self, *values):
        if self.number > 0 and not HEALTHY:  # CULPRIT
            return None
        return function(self, *values)

    return inner


class Engine:
    def __init__(self):
        dist.init_process_group("gloo")
        self.number = dist.get_rank()
        self.weights = torch.ones(8)

    def step(self, count):
        dist.all_reduce(self.weights)
        self.weights.div_(dist.get_world_size())
        if count % 20 == 19:
            self.publish()

    @foremost
    def publish(self):
        dist.broadcast(self.weights, src=0)  # CULPRIT


def main():
    engine = Engine()
    print("READY", flush=True)
    for count in range(10**6):
        engine.step(count)
        time.sleep(0.01)


main()
