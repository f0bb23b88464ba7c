# SPDX-License-Identifier: Apache-2.0
"""One of four processes was never started; the others wait in init_process_group. Launched by a bare shell."""
import time

import torch.distributed as dist


def main():
    print("READY", flush=True)
    dist.init_process_group("gloo")  # CULPRIT
    while True:
        dist.barrier()
        time.sleep(0.02)


main()
