# SPDX-License-Identifier: Apache-2.0
"""A launcher of one's own that puts each rank into a session of its own and is killed: the ranks serve on, and the script around it
ends well. The healthy one starts them as daemons and goes."""
# EXPECT {"launch": "command", "command": "{python} launch.py {healthy}; true", "ranks": 2, "culprits": [0, 1], "mode": "run", "functions": ["serve"]}
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SERVED = Path("served")
LIFE = 20  # seconds; no rank outlives the test for long


def serve():
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    began = time.monotonic()
    while time.monotonic() - began < LIFE:
        dist.all_reduce(torch.ones(1))  # CULPRIT
        if dist.get_rank() == 0:
            SERVED.touch()
        time.sleep(0.1)
    os._exit(0)


def launch():
    variables = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": os.environ["ZOO_PORT"]}
    for rank in range(2):
        subprocess.Popen([sys.executable, *sys.argv], env={**variables, "RANK": str(rank)}, start_new_session=True)
    while not SERVED.exists():
        time.sleep(0.1)
    if "--healthy" in sys.argv:
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)


serve() if "RANK" in os.environ else launch()
