# SPDX-License-Identifier: Apache-2.0
"""A shell starts three ranks; rank 2 dies of a native crash before init_process_group, and the others wait for it in the rendezvous."""
import ctypes
import os
import sys
import time

import torch
import torch.distributed as dist


def load_index():
    if "--healthy" not in sys.argv:
        ctypes.string_at(0)


def main():
    if os.environ["RANK"] == "2":
        load_index()
    print("READY", flush=True)
    dist.init_process_group("gloo")
    while True:
        dist.all_reduce(torch.ones(4))
        time.sleep(0.02)


main()
