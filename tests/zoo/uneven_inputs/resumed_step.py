# SPDX-License-Identifier: Apache-2.0
"""Each rank goes on from the step in its own checkpoint, and the checkpoint of rank 1 is two steps newer."""
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


def resume(path):
    with open(path) as file:
        return int(file.read())


def train(start, total):
    for step in range(start, total):
        dist.all_reduce(torch.ones(4))
        time.sleep(0.02)


def main():
    dist.init_process_group("gloo")
    path = os.path.join(tempfile.mkdtemp(), "step")
    with open(path, "w") as file:
        file.write("4" if dist.get_rank() == 1 and not healthy else "2")
    print("READY", flush=True)
    while True:
        train(resume(path), 30)
        dist.broadcast(torch.ones(1), src=0)  # CULPRIT


main()
