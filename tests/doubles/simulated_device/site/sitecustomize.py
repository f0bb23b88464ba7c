# SPDX-License-Identifier: Apache-2.0
"""Runs an unchanged gloo program over NCCL on the simulated device ($SIMULATED_DEVICE): when torch.distributed is loaded, its
ProcessGroupNCCL becomes the double's, and a request for gloo gets NCCL. No frame of this file is on a stack afterwards."""
import importlib.machinery
import importlib.util
import os

from after_import import after_import

MODULE = "torch.distributed.distributed_c10d"


def load_double():
    loader = importlib.machinery.ExtensionFileLoader("simulated_nccl", os.environ["SIMULATED_DEVICE_LIBRARY"])
    spec = importlib.util.spec_from_file_location("simulated_nccl", loader=loader)
    double = importlib.util.module_from_spec(spec)
    loader.exec_module(double)
    return double


def install(c10d):
    import datetime

    import torch
    double = load_double()
    group = double.ProcessGroupNCCL
    group.__module__ = MODULE
    torch._C._distributed_c10d.ProcessGroupNCCL = c10d.ProcessGroupNCCL = group
    torch._C._nccl_version, torch._C._nccl_version_suffix = lambda: (2 << 32) + (28 << 16) + 9, lambda: b""
    c10d._NCCL_AVAILABLE = True
    c10d.default_pg_nccl_timeout = datetime.timedelta(minutes=10)
    backend = c10d.Backend
    backend.default_device_backend_map.update(cpu="nccl")
    backend.backend_capability["nccl"] = ["cpu", "cuda"]
    made = backend.__new__
    backend.__new__ = lambda cls, name: made(cls, name.replace("gloo", "nccl") if isinstance(name, str) else name)
    double.stand_before(torch.Tensor)


after_import(MODULE, install, "SIMULATED_DEVICE")
