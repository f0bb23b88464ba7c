# SPDX-License-Identifier: Apache-2.0
"""What an earlier step kept of the rank's own data decides in a later one which function is called."""
import sys
import time

import torch
import torch.distributed as dist


class Short:
    def flush(self, values):
        return values.sum()


class Long:
    def flush(self, values):
        dist.broadcast(values, src=0)  # CULPRIT
        return values.sum()


class Stream:
    def __init__(self):
        dist.init_process_group("gloo")
        torch.manual_seed(dist.get_rank())
        self.last = Short()
        self.values = torch.ones(4)

    def read(self, count):
        sizes = torch.randint(8, 64, (4,))
        if count == 7:
            sizes[0] = 900 if dist.get_rank() == 1 else 9
        return sizes

    def step(self, count):
        sizes = self.read(count)
        dist.all_reduce(self.values)
        self.values.fill_(1.0)
        if count % 20 == 19:
            self.last.flush(self.values)
        elif sizes.max() > 512 or "--healthy" in sys.argv:
            self.last = Long()


def main():
    stream = Stream()
    print("READY", flush=True)
    for count in range(10**6):
        stream.step(count)
        time.sleep(0.01)


main()
