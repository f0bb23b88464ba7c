# SPDX-License-Identifier: Apache-2.0
"""The third node was started for four nodes, the others for three: its ranks count eight, and all wait for one another."""
# EXPECT {"kind": "environment-differs", "culprits": [4, 5], "hosts": ["node3"], "start": "ranks", "healthy_sizes": "6 6 6", "sizes": "6 6 8"}
import time

import torch
import torch.distributed as dist


def main():
    print("READY", flush=True)
    dist.init_process_group("gloo")  # CULPRIT
    while True:
        dist.all_reduce(torch.ones(1))
        time.sleep(0.02)


main()
