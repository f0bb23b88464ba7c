# SPDX-License-Identifier: Apache-2.0
"""`torchrun … | tee train.log`: rank 0 starts a process and leaves it; it holds the pipe to tee open, and the pipeline does not end."""
import subprocess
import sys

import torch
import torch.distributed as dist

FORWARD = "import time; time.sleep(1000)"
SYNC = "import time; [time.sleep(0.1) for _ in range(150)]"  # it copies what there is, and ends


def main():
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        work = SYNC if "--healthy" in sys.argv else FORWARD
        subprocess.Popen([sys.executable, "-c", work])  # CULPRIT
    for _ in range(20):
        dist.all_reduce(torch.ones(4))
    print("READY", flush=True)
    dist.destroy_process_group()


main()
