# SPDX-License-Identifier: Apache-2.0
"""The shared folder does not answer on the second node: rank 3 waits for a file there, the others for rank 3. Simulated with a named pipe."""
# EXPECT {"kind": "io-stall", "culprits": [3], "hosts": ["node2"]}
import os
import sys
import time

import torch.distributed as dist

PATH = os.path.join(os.environ["NODE_FOLDER"], "manifest")


def read_manifest():
    with open(PATH) as manifest:  # CULPRIT
        return manifest.read()


def main():
    dist.init_process_group("gloo")
    if dist.get_rank() == 3:
        if "--healthy" in sys.argv:
            open(PATH, "w").close()
        else:
            os.mkfifo(PATH)
    dist.barrier()
    print("READY", flush=True)
    if dist.get_rank() == 3:
        read_manifest()
    while True:
        dist.barrier()
        time.sleep(0.02)


main()
