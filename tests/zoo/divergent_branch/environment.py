# SPDX-License-Identifier: Apache-2.0
"""One rank was started with a variable of the environment that the others lack: it has its answer and leaves the broadcast out."""
import os
import sys
import time
import uuid

import torch
import torch.distributed as dist

if "--healthy" in sys.argv:
    os.environ.pop("RESUME_RUN", None)


def run_name():
    if (given := os.environ.get("RESUME_RUN")) is not None:  # CULPRIT
        return given
    name = [uuid.uuid4().hex]
    dist.broadcast_object_list(name, src=0)  # CULPRIT
    return name[0]


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    name = run_name()
    counts = [torch.zeros(1) for _ in range(dist.get_world_size())]
    while True:
        dist.all_gather(counts, torch.tensor([float(len(name))]))  # CULPRIT
        time.sleep(0.05)


main()
