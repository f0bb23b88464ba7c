#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real ring as an input of fuzz_ring (ring.cc): ring_seed.py FILE.ring OUT writes all non-zero words as patches, four bytes of offset and
eight of value, alternately one for the first 8,192 bytes and one for the rest."""
import struct
import sys
from pathlib import Path

FIRST, NEAR = 12, 8192  # magic and version are the target's own

data = Path(sys.argv[1]).read_bytes()
places = [FIRST, *(at for at in range(24, len(data) - 8, 8) if any(data[at:at + 8]))]
near, far = [at for at in places if at < NEAR - 12], [at for at in places if at >= NEAR - 12]
out = b""
for i in range(max(len(near), len(far))):
    for at in (near[min(i, len(near) - 1)], far[min(i, len(far) - 1)]):
        out += struct.pack("<I", at - FIRST) + data[at:at + 8]
Path(sys.argv[2]).write_bytes(out)
