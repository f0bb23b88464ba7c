# SPDX-License-Identifier: Apache-2.0
"""Rank 1 tries to open a file until a converter has written it; rank 0 waits for it in a collective, longer than the hang timeout."""
import os
import subprocess
import sys
import time

import torch
import torch.distributed as dist

CONVERTER = "import sys, time; time.sleep(11); open(sys.argv[1], 'w').write('1')"


def load(path):
    while True:
        try:
            with open(path) as f:
                return float(f.read())
        except OSError:
            time.sleep(0.4)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    print("READY", flush=True)
    for turn in range(2):
        path = f"part-{turn}-{os.getppid()}"
        if rank == 0:
            subprocess.Popen([sys.executable, "-c", CONVERTER, path])
        else:
            load(path)
        dist.all_reduce(torch.ones(1))


main()
