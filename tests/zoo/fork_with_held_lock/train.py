# SPDX-License-Identifier: Apache-2.0
"""A child is forked while another thread of the parent holds a native mutex; in the child its owner does not exist."""
import ctypes
import os
import sys
import threading
import time

import torch.distributed as dist

libc = ctypes.CDLL(None)
mutex = ctypes.create_string_buffer(64)


def flush_metrics():
    while True:
        libc.pthread_mutex_lock(mutex)
        time.sleep(0.2)
        libc.pthread_mutex_unlock(mutex)
        time.sleep(0.02)


def child_main():
    libc.pthread_mutex_lock(mutex)  # CULPRIT
    libc.pthread_mutex_unlock(mutex)


def start_helper():
    pid = os.fork()
    if pid == 0:
        child_main()
        os._exit(0)
    os.waitpid(pid, 0)


def main():
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        threading.Thread(target=flush_metrics, daemon=True).start()
        time.sleep(0.05)
    print("READY", flush=True)
    if dist.get_rank() == 0 and "--healthy" not in sys.argv:
        start_helper()
    while True:
        dist.barrier()
        time.sleep(0.02)


main()
