# SPDX-License-Identifier: Apache-2.0
"""Rank 1 was given another MASTER_PORT than rank 0: it connects to a port on which no process listens."""
import os
import subprocess
import sys
import time

import torch.distributed as dist


def places():
    port = int(os.environ["ZOO_PORT"])
    ports = [port, port if "--healthy" in sys.argv else port + 7]
    return [{"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(ports[rank])} for rank in range(2)]


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
