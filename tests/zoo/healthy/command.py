# SPDX-License-Identifier: Apache-2.0
"""Rank 0 runs a slow command and reads its output; the others wait in a barrier, longer than the hang timeout."""
import subprocess
import sys

import torch.distributed as dist

COMMAND = "import time\nfor i in range(24):\n    print(i, flush=True)\n    time.sleep(0.5)"


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    for _ in range(2):
        if dist.get_rank() == 0:
            subprocess.run([sys.executable, "-c", COMMAND], capture_output=True, check=True)
        dist.barrier()


main()
