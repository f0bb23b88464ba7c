# SPDX-License-Identifier: Apache-2.0
"""A rank fails once; the script that starts the job restarts it, and then it succeeds. The calls of the two attempts must not be compared."""
import os
import time

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    first = os.environ["ATTEMPT"] == "0"
    print("READY", flush=True)
    for step in range(20):
        if first:
            dist.all_reduce(torch.ones(8))
        else:
            dist.broadcast(torch.ones(16), src=1)
        if first and dist.get_rank() == 1 and step == 12:
            raise RuntimeError("the node was taken away")
        time.sleep(0 if first else 0.5)
    dist.destroy_process_group()


main()
