# SPDX-License-Identifier: Apache-2.0
"""A real GPU in the place of the simulated device (tests/doubles/simulated_device/device.py): all ranks of a job share it."""
import os
import shutil
import subprocess
import time
from pathlib import Path

SITE = f"{Path(__file__).resolve().parent / 'site'}:{Path(__file__).resolve().parents[1] / 'support' / 'site'}"
NCCL = {"NCCL_NET": "Socket", "NCCL_NET_PLUGIN": "none", "NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": "=lo", "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1",
        "NCCL_NVLS_ENABLE": "0", "NCCL_COLLNET_ENABLE": "0", "NCCL_MNNVL_ENABLE": "0", "NCCL_CUMEM_HOST_ENABLE": "0", "NCCL_NET_GDR_LEVEL": "LOC",
        "NCCL_MAX_CTAS": "2", "NCCL_MIN_CTAS": "1"}  # as in run_single_gpu.sh, which says why


def why_not():
    """What is missing on this machine for it; None if nothing is."""
    if not shutil.which("nvidia-smi"):
        return "no nvidia-smi: no GPU here"
    seen = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout
    return None if seen.startswith("GPU") else "nvidia-smi shows no GPU"


class Device:
    """The environment with which a job uses the GPU."""

    def __init__(self, seconds=90):
        self.environment = {**NCCL, "ZOO_ON_CUDA": "1", "CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0"), "PYTHONPATH": SITE}

    def settle(self, limit=30.0):
        """A kernel that waits cannot be told from one that computes, from outside: the hosts get some seconds to run ahead."""
        time.sleep(min(4.0, limit))

    def end(self):
        """Contexts end with their processes."""
