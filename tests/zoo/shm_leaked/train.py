# SPDX-License-Identifier: Apache-2.0
"""Rank 0 keeps a table in shared memory for all ranks of the machine. It takes the name away from Python's resource tracker, which
would remove the segment under the others, and then nobody removes it."""
# EXPECT {"launch": "torchrun", "ranks": 2, "culprits": [0], "mode": "run"}
import os
import sys
from multiprocessing import resource_tracker, shared_memory

import torch.distributed as dist

BYTES = 8 << 20


def make_table(name):
    segment = shared_memory.SharedMemory(name=name, create=True, size=BYTES)  # CULPRIT
    resource_tracker.unregister(segment._name, "shared_memory")
    segment.buf[:4] = b"text"
    return segment


def open_table(name):
    segment = shared_memory.SharedMemory(name=name)
    resource_tracker.unregister(segment._name, "shared_memory")
    return segment


def main():
    dist.init_process_group("gloo")
    name = f"zoo-table-{os.environ['ZOO_PORT']}"
    segment = make_table(name) if dist.get_rank() == 0 else None
    dist.barrier()
    segment = segment or open_table(name)
    assert bytes(segment.buf[:4]) == b"text"
    dist.barrier()
    segment.close()
    if "--healthy" in sys.argv and dist.get_rank() == 0:
        resource_tracker.register(segment._name, "shared_memory")  # unlink() takes it out again
        segment.unlink()
    dist.destroy_process_group()


main()
