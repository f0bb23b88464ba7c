# SPDX-License-Identifier: Apache-2.0
"""The work is done; a thread still uploads, piece by piece, and then the ranks end."""
import threading
import time

import torch.distributed as dist


def upload(pieces):
    for _ in range(pieces):
        time.sleep(1.5)


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    dist.barrier()
    if dist.get_rank() == 0:
        threading.Thread(target=upload, args=(9,)).start()
    dist.destroy_process_group()


main()
