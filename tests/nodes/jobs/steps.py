# SPDX-License-Identifier: Apache-2.0
"""A healthy job: what is wrong comes from outside, to one node. `missing`: it never starts. `dead`: its power fails."""
# EXPECT {"name": "missing_node", "kind": "rendezvous-incomplete", "absent": "node3", "culprits": [4, 5], "confidence": "possible", "ready": 0, "location": false}
# EXPECT {"name": "dead_node", "dead": "node3", "silent": "node3", "healthy": false}
import time

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    for step in range(1000000):
        dist.all_reduce(torch.ones(16))
        if step == 3:
            print("READY", flush=True)
        time.sleep(0.02)


main()
