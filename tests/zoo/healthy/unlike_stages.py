# SPDX-License-Identifier: Apache-2.0
"""Ranks with different classes behind one call line, callbacks of their own and other tables, which make the same collectives."""
import time

import torch
import torch.distributed as dist


class First:
    def run(self, values):
        values.add_(1.0)
        dist.all_reduce(values)


class Last:
    def run(self, values):
        dist.all_reduce(values)
        self.seen = values.sum()


class Printer:
    def after(self, count):
        if count % 50 == 0:
            print("step", count, flush=True)


def main():
    dist.init_process_group("gloo")
    number = dist.get_rank()
    stage = {"first": First, "last": Last}["first" if number == 0 else "last"]()
    callbacks = [Printer()] if number == 0 else []
    values = torch.ones(4)
    print("READY", flush=True)
    for count in range(10**6):
        stage.run(values)
        values.fill_(1.0)
        for one in callbacks:
            one.after(count)
        time.sleep(0.01 if number else 0.03)


main()
