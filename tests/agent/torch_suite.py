#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own gloo tests that ship in the wheel, in processes of this one: run it bare and with LD_PRELOAD and DDPDOCTOR_SPOOL set to
compare. Needs expecttest and hypothesis beside torch.

  torch_suite.py TestGloo.test_all_reduce_sum TestGloo.test_send_recv …"""
import os
import tempfile
from pathlib import Path

if "BACKEND" not in os.environ:  # children are spawned and import this file again
    TOP = Path(tempfile.mkdtemp(prefix="ddptorch_"))
    for folder in ("barrier", "test_dir", "init_dir"):
        (TOP / folder).mkdir()
    os.environ.update(BACKEND="gloo", INIT_METHOD=f"file://{TOP}/shared_init_file", WORLD_SIZE="2", TEMP_DIR=str(TOP))

from torch.testing._internal.common_utils import run_tests  # noqa: E402
from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend  # noqa: E402


class TestGloo(TestDistBackend, DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._spawn_processes()


if __name__ == "__main__":
    run_tests()
