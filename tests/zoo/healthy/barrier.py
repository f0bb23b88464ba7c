# SPDX-License-Identifier: Apache-2.0
"""Ranks 1 and 2 wait in a barrier while rank 0 writes a large checkpoint in pieces."""
import os
import tempfile

import torch
import torch.distributed as dist


def save(folder):
    for i in range(100000):
        torch.save(torch.randn(2000, 500), os.path.join(folder, f"part-{i % 3}.pt"))


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if dist.get_rank() == 0:
            save(folder)
        dist.barrier()


main()
