# SPDX-License-Identifier: Apache-2.0
"""A Python lock is held by the statistics thread at the moment of a fork; the child waits for it forever."""
import os
import sys
import threading
import time

import torch.distributed as dist

table_lock = threading.Lock()


def collect_statistics():
    while True:
        with table_lock:
            time.sleep(0.5)


def write_snapshot():
    with table_lock:  # CULPRIT
        return 1


def snapshot_in_child():
    pid = os.fork()
    if pid == 0:
        write_snapshot()
        os._exit(0)
    os.waitpid(pid, 0)


def main():
    dist.init_process_group("gloo")
    healthy = "--healthy" in sys.argv
    if dist.get_rank() == 1:
        threading.Thread(target=collect_statistics, daemon=True).start()
        time.sleep(0.1)
    print("READY", flush=True)
    if dist.get_rank() == 1 and not healthy:
        snapshot_in_child()
    while True:
        dist.barrier()
        time.sleep(0.02)


main()
