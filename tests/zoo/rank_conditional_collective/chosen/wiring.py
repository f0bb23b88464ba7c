# SPDX-License-Identifier: Apache-2.0
"""Who listens on which rank."""
import torch.distributed as dist


class Counter:
    def __init__(self):
        self.steps = 0

    def after(self, total, count):
        self.steps = count


class Keeper:
    def __init__(self, every):
        self.every = every

    def after(self, total, count):
        if count % self.every == self.every - 1:
            dist.broadcast(total, src=0)  # CULPRIT


def listeners_for(number, everywhere):
    found = [Counter()]
    if number == 0 or everywhere:
        found.append(Keeper(20))
    return found
