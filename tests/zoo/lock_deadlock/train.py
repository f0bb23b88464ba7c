# SPDX-License-Identifier: Apache-2.0
"""Two threads of rank 0 take two locks in opposite order."""
import sys
import threading
import time

import torch.distributed as dist

model_lock = threading.Lock()
queue_lock = threading.Lock()


def export_weights():
    with queue_lock:
        time.sleep(0.3)
        with model_lock:  # CULPRIT
            pass


def update_weights():
    with model_lock:
        time.sleep(0.3)
        with queue_lock:  # CULPRIT
            pass


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    if dist.get_rank() == 0 and "--healthy" not in sys.argv:
        threading.Thread(target=export_weights, daemon=True).start()
        update_weights()
    while True:
        dist.barrier()
        time.sleep(0.02)


main()
