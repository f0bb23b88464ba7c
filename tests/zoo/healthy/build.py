# SPDX-License-Identifier: Apache-2.0
"""Rank 0 waits for a compiler that works, the other waits at the barrier."""
import os
import sys
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


import subprocess


def build():
    subprocess.run([sys.executable, "-c", "import time; e=time.time()+9\nwhile time.time()<e: sum(range(1000))"], check=True)


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    for epoch in range(100):
        if dist.get_rank() == 0:
            build()
        dist.barrier()


main()
