# SPDX-License-Identifier: Apache-2.0
"""The lock file of an extension build that was killed long ago: all ranks wait for its owner, which has ended."""
import os
import sys
import tempfile
import time

import torch.distributed as dist
from torch.utils.file_baton import FileBaton


def load_extension(folder):
    baton = FileBaton(os.path.join(folder, "lock"))
    if baton.try_acquire():
        baton.release()
    else:
        baton.wait()  # CULPRIT


def main():
    dist.init_process_group("gloo")
    folder = tempfile.mkdtemp()
    if "--healthy" not in sys.argv:
        open(os.path.join(folder, "lock"), "w").close()
        os.utime(os.path.join(folder, "lock"), (0, time.time() - 86400))
    print("READY", flush=True)
    load_extension(folder)
    while True:
        dist.barrier()
        time.sleep(0.02)


main()
