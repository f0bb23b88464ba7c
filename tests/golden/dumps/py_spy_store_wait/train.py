# SPDX-License-Identifier: Apache-2.0
"""Ranks wait in the store for a key that the configuration server never sets."""
import sys
import time
from datetime import timedelta

import torch.distributed as dist


def fetch_plan(store):
    return store.get("plan/epoch-0")  # CULPRIT


def main():
    dist.init_process_group("gloo", timeout=timedelta(hours=1))
    store = dist.distributed_c10d._get_default_store()
    if "--healthy" in sys.argv and dist.get_rank() == 0:
        store.set("plan/epoch-0", "1")
    print("READY", flush=True)
    fetch_plan(store)
    while True:
        dist.barrier()
        time.sleep(0.02)


main()
