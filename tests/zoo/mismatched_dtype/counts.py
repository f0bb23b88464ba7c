# SPDX-License-Identifier: Apache-2.0
"""Rank 1 counts in int32 where the others have float32 of the same size: gloo adds the bytes without an error."""
import os
import sys
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


def main():
    dist.init_process_group("gloo")
    for step in range(6):
        dtype = torch.int32 if dist.get_rank() == 1 and step == 2 and not healthy else torch.float32
        counts = torch.ones(16, dtype=dtype)
        dist.all_reduce(counts)  # CULPRIT
        time.sleep(0.3)
    dist.destroy_process_group()


main()
