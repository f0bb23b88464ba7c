# SPDX-License-Identifier: Apache-2.0
"""A rank fails with an exception and then waits at its end for one of its threads; the others are in the next step."""
import sys
import threading
import time

import torch
import torch.distributed as dist


class Uploader(threading.Thread):
    def __init__(self):
        super().__init__(name="uploader")
        self.stopped = threading.Event()

    def run(self):
        self.stopped.wait()


def load(step, healthy):
    if step == 40 and dist.get_rank() == 1 and not healthy:
        raise ValueError("no label in sample 1287")  # CULPRIT
    return torch.ones(4)


def main():
    dist.init_process_group("gloo")
    uploader = Uploader()
    uploader.start()
    print("READY", flush=True)
    for step in range(100000):
        dist.all_reduce(load(step, "--healthy" in sys.argv))
        time.sleep(0.01)
    uploader.stopped.set()


main()
