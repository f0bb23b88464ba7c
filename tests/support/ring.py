# SPDX-License-Identifier: Apache-2.0
"""A ring as its process left it, for tests of the agent without the collector. wire/layout.h is the definition."""
import struct
from pathlib import Path
from types import SimpleNamespace

KINDS = {1: "collective", 2: "message"}
PHASES = ("enqueued", "started", "completed", "failed")
GROUPED, ON_STREAM, TRACKED, CAPTURED, IN_PROGRESS = 4, 8, 16, 32, 64
SLOTS, SITES, GROUPS = 16384, 8192, 64
TEXT_BYTES, STDERR_BYTES = 512 * 1024, 16 * 1024
SLOT, SITE = struct.Struct("<QQIHBBIHBBQqIiII"), struct.Struct("<IIII")
GROUP = struct.Struct("<QQ48s16siiIIIIQQ64sII64s")
GROUP_FIELDS = "backend process_group name backend_name rank size enqueued completed failed messages"


class Ring:
    def __init__(self, path):
        self.bytes = Path(path).read_bytes()
        assert self.bytes[:8] == b"DDPRING1"
        self.rank, = struct.unpack_from("<i", self.bytes, 32)
        self.untracked, = struct.unpack_from("<I", self.bytes, 480 + 64 * 24)  # calls of NCCL without an end, behind the waits
        self.site_at = 4096 + SLOTS * SLOT.size
        self.group_at = self.site_at + SITES * SITE.size

    def text(self, offset):
        """A text of the pool; the pool stands before the standard error at the end of the file."""
        at = len(self.bytes) - STDERR_BYTES - TEXT_BYTES + offset
        return self.bytes[at:self.bytes.index(b"\0", at)].decode()

    def slots(self):
        names = "sequence time tid kind phase operation site group dtype reduce_op object count number peer text detail".split()
        found = []
        for index in range(SLOTS):
            values = SLOT.unpack_from(self.bytes, 4096 + index * SLOT.size)
            if values[0]:
                found.append(SimpleNamespace(**dict(zip(names, values))))
        return sorted(found, key=lambda slot: slot.sequence)

    def groups(self):
        found = []
        for index in range(GROUPS):
            values = GROUP.unpack_from(self.bytes, self.group_at + index * GROUP.size)
            if values[3].strip(b"\0"):
                one = SimpleNamespace(**dict(zip(GROUP_FIELDS.split(), values)))
                one.name, one.backend_name = (text.rstrip(b"\0").decode() for text in (one.name, one.backend_name))
                found.append(one)
        return found

    def calls(self):
        """Collectives and messages in order, with the newest phase of each."""
        calls, found = {}, []
        for slot in self.slots():
            if slot.kind in KINDS:
                key = slot.kind, slot.group, slot.number
                if PHASES[slot.phase] == "enqueued":
                    slot.state = "enqueued"
                    calls[key] = slot
                    found.append(slot)
                elif key in calls:
                    calls[key].state = PHASES[slot.phase]
        return found


def rings(folder):
    """By rank; processes without one are left out."""
    found = {ring.rank: ring for ring in map(Ring, Path(folder).glob("*.ring"))}
    return {rank: ring for rank, ring in found.items() if rank >= 0}
