# SPDX-License-Identifier: Apache-2.0
"""Rank 2 has nothing to do and leaves with status 0 before it says that it is done; the others wait for it in the store."""
import os
import sys
import time
from datetime import timedelta

import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    store = dist.distributed_c10d._get_default_store()
    store.set_timeout(timedelta(hours=1))
    print("READY", flush=True)
    if dist.get_rank() == 2 and "--healthy" not in sys.argv:
        os._exit(0)  # CULPRIT
    store.set(f"done/{dist.get_rank()}", "1")
    store.wait([f"done/{rank}" for rank in range(3)])
    while True:
        dist.barrier()
        time.sleep(0.02)


main()
