# SPDX-License-Identifier: Apache-2.0
"""The log of rank 1 is written to a pipe whose reader has stopped reading."""
import os
import sys
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


import logging
import subprocess


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    log = logging.getLogger("train")
    log.setLevel(logging.INFO)
    if rank == 1:
        sink = subprocess.Popen([sys.executable, "-c", "import time,sys\n" + ("for l in sys.stdin: pass" if healthy else "time.sleep(3600)")], stdin=subprocess.PIPE, text=True)
        log.addHandler(logging.StreamHandler(sink.stdin))
    print("READY", flush=True)
    for step in range(1000000):
        dist.all_reduce(torch.ones(1))
        log.info("step %d %s", step, "x" * 4000)  # CULPRIT
        time.sleep(0.005)


main()
