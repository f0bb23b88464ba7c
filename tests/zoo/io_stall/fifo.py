# SPDX-License-Identifier: Apache-2.0
"""Rank 0 opens a named pipe to which no process writes."""
import os
import sys
import tempfile
import time

import torch.distributed as dist


def read_manifest(path):
    with open(path) as manifest:  # CULPRIT
        return manifest.read()


def main():
    dist.init_process_group("gloo")
    path = os.path.join(tempfile.mkdtemp(), "manifest")
    if "--healthy" in sys.argv:
        open(path, "w").close()
    else:
        os.mkfifo(path)
    print("READY", flush=True)
    if dist.get_rank() == 0:
        read_manifest(path)
    while True:
        dist.barrier()
        time.sleep(0.02)


main()
