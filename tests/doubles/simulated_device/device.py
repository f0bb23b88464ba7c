# SPDX-License-Identifier: Apache-2.0
"""A job on the simulated device: `device.py [--seconds N] -- COMMAND…`, or `Device` for callers that start the job themselves. After
SECONDS its ranks are killed."""
import argparse
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import build  # noqa: E402

STREAMS, QUEUE, COMMAND = 32, 1024, 64  # protocol.h
STREAM = 24 + QUEUE * COMMAND
FIRST = 8 + 64 * 8 + 128 * 40
SITE = f"{Path(__file__).resolve().parent / 'site'}:{Path(__file__).resolve().parents[2] / 'support' / 'site'}"


class Device:
    """The process that simulates the GPUs of one job's ranks, and the environment with which a job uses it."""

    def __init__(self, seconds=90):
        built = build.folder()
        self.folder = Path(tempfile.mkdtemp(prefix="simulated_device_"))
        self.process = subprocess.Popen([str(built / "device"), str(self.folder), str(seconds)], stdin=subprocess.DEVNULL, start_new_session=True)
        self.environment = {"SIMULATED_DEVICE": str(self.folder), "SIMULATED_DEVICE_LIBRARY": str(built / "libtorch_cuda.so"), "PYTHONPATH": SITE}

    def calls(self):
        """How many kernels each stream of each rank was given and has completed."""
        seen = {}
        for file in self.folder.glob("*.rank"):
            with file.open("rb") as device:
                for stream in range(STREAMS):
                    device.seek(FIRST + stream * STREAM)
                    seen[file.name, stream] = struct.unpack("QQ", device.read(16))
        return seen

    def settle(self, quiet=3.0, limit=30.0):
        """Waits until no rank launches a kernel any more and none ends: the job hangs, or continues without calls."""
        begin = since = time.time()
        last = self.calls()
        while time.time() - begin < limit and time.time() - since < quiet:
            time.sleep(0.25)
            now = self.calls()
            if now != last:
                since, last = time.time(), now

    def end(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=90)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    device = Device(options.seconds)
    try:
        return subprocess.run(options.command, env={**os.environ, **device.environment}).returncode
    finally:
        device.end()


if __name__ == "__main__":
    sys.exit(main())
