# SPDX-License-Identifier: Apache-2.0
"""A launcher gives RANK=1 to two processes; no process is rank 2, and the others wait for it."""
import os
import subprocess
import sys
import time

import torch.distributed as dist


def places():
    ranks = [0, 1, 2] if "--healthy" in sys.argv else [0, 1, 1]
    return [{"RANK": str(rank), "WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": os.environ["ZOO_PORT"]} for rank in ranks]


def train():
    print("READY", flush=True)
    dist.init_process_group("gloo")  # CULPRIT
    while True:
        dist.barrier()
        time.sleep(0.02)


if "RANK" in os.environ:
    train()
else:
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, **place}) for place in places()]
    for rank in ranks:
        rank.wait()
