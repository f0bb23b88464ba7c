# SPDX-License-Identifier: Apache-2.0
"""Whether to rebuild the cache is decided per rank by looking at the file system; rank 2 sees no cache and gathers.
Re-enacts: Path.exists() evaluated on every rank."""
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist


def rebuild_cache(shards):
    counts = [torch.zeros(1) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, torch.tensor([float(shards)]))  # CULPRIT


def prepare(folder):
    cache = os.path.join(folder, "cache.bin")
    if not os.path.exists(cache):
        rebuild_cache(12)


def main():
    dist.init_process_group("gloo")
    folder = tempfile.mkdtemp()
    if dist.get_rank() != 2 or "--healthy" in sys.argv:
        open(os.path.join(folder, "cache.bin"), "w").close()
    print("READY", flush=True)
    prepare(folder)
    weights = torch.ones(64)
    while True:
        dist.broadcast(weights, src=0)
        time.sleep(0.02)


main()
