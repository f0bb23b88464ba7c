# SPDX-License-Identifier: Apache-2.0
"""A table gives each role its class and the rank its role; the method of one class makes a collective that the other lacks."""
import sys
import time

import torch
import torch.distributed as dist
from parts import part_for


class Fleet:
    def __init__(self):
        dist.init_process_group("gloo")
        self.part = part_for(dist.get_rank(), "--healthy" in sys.argv)
        self.weights = torch.ones(8)

    def run(self):
        for count in range(10**6):
            self.weights.mul_(0.5)
            self.part.advance(self.weights, count)
            time.sleep(0.01)


print("READY", flush=True)
Fleet().run()
