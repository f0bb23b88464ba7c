# SPDX-License-Identifier: Apache-2.0
"""The main thread blocks in native code without releasing the GIL; the thread that would wake it needs the GIL."""
import ctypes
import sys
import threading
import time

import torch.distributed as dist

semaphore = ctypes.create_string_buffer(64)
ctypes.CDLL(None).sem_init(semaphore, 0, 0)


def finish_upload():
    time.sleep(0.3)
    ctypes.CDLL(None).sem_post(semaphore)


def wait_for_upload():
    threading.Thread(target=finish_upload, daemon=True).start()
    library = ctypes.CDLL(None) if "--healthy" in sys.argv else ctypes.PyDLL(None)
    library.sem_wait(semaphore)  # CULPRIT


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    if dist.get_rank() == 1:
        wait_for_upload()
    while True:
        dist.barrier()
        time.sleep(0.02)


main()
