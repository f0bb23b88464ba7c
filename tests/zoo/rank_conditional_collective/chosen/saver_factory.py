# SPDX-License-Identifier: Apache-2.0
"""A factory gives one rank a saver and the others none; who has one calls it, and it waits for everybody."""
import os
import sys
import time

import torch
import torch.distributed as dist
from savers import make_saver


class Session:
    def __init__(self, saver):
        self.saver = saver
        self.state = torch.ones(8)

    def step(self, count):
        dist.all_reduce(self.state)
        self.state.fill_(1.0)
        if count % 20 == 19:
            self.finish()

    def finish(self):
        if self.saver is not None:  # CULPRIT
            self.saver.save(self.state)


def main():
    dist.init_process_group("gloo")
    session = Session(make_saver(int(os.environ["RANK"]), "--healthy" in sys.argv))
    print("READY", flush=True)
    for count in range(10**6):
        session.step(count)
        time.sleep(0.01)


main()
