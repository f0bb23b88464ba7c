# SPDX-License-Identifier: Apache-2.0
"""Runs an unchanged gloo program of the zoo over NCCL with its tensors on one real GPU ($ZOO_ON_CUDA): when torch.distributed is loaded,
a request for gloo gets NCCL, and tensors are made on the GPU unless the program says otherwise. No frame of this file is on a stack
afterwards. Several ranks share the GPU, which NCCL permits to ranks of different hosts only: each says that it is on its own."""
import os
import warnings

from after_import import after_import

MODULE = "torch.distributed.distributed_c10d"


def install(c10d):
    import torch

    os.environ.setdefault("NCCL_HOSTID", f"host-{os.environ.get('RANK', os.getpid())}")
    backend, generator = c10d.Backend, torch.Generator
    made = backend.__new__
    backend.__new__ = lambda cls, name: made(cls, name.replace("gloo", "nccl") if isinstance(name, str) else name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.set_default_tensor_type("torch.cuda.FloatTensor")  # not set_default_device, which puts a frame of its own above each call

    class Generator(generator):
        def __new__(cls, device="cuda"):
            return generator.__new__(cls, device)
    torch.Generator = Generator


after_import(MODULE, install, "ZOO_ON_CUDA")
