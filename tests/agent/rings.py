# SPDX-License-Identifier: Apache-2.0
"""Reads a ring in the layout of wire/layout.h, as far as the tests of the agent need it."""
import struct
from pathlib import Path
from typing import NamedTuple

SLOTS, SLOT, SITES = 16384, 64, 8192
SITE_AT = 4096 + SLOTS * SLOT
GROUP_AT = SITE_AT + SITES * 16
SEGMENT_AT = GROUP_AT + 64 * 256 + 4 * 65600 + 1024 * 24
TEXT_AT = SEGMENT_AT + 256 * 120
WAIT_AT = 480
VERSION_AT = 196
KINDS = {1: "collective", 2: "point-to-point", 3: "store", 8: "fork", 10: "exit", 11: "child-exit", 12: "team", 14: "shm-open", 15: "shm-unlink",
         16: "shm-size", 17: "cuda", 18: "cuda-after-fork", 19: "descriptors-full", 21: "wait-end", 23: "no-space", 28: "signal-sent"}
MADE, MAPPED = 1, 2  # bits of a segment


class Event(NamedTuple):
    kind: str
    phase: int
    count: int
    peer: int
    text: str
    detail: int
    line: int
    file: str
    operation: int
    sequence: int  # in its group
    dtype: int
    reduce_op: int
    site: int


class Ring:
    def __init__(self, path):
        self.data = Path(path).read_bytes()
        self.pid, self.ppid = struct.unpack_from("<II", self.data, 16)
        [self.disabled] = struct.unpack_from("<I", self.data, 44)
        self.python_version = self.data[VERSION_AT:VERSION_AT + 16].split(b"\0")[0].decode(errors="replace")
        self.head, self.lost = struct.unpack_from("<QQ", self.data, 64)
        self.torn = 0
        self.events = list(self._events())

    def _text(self, at):
        end = self.data.index(b"\0", TEXT_AT + at)
        return self.data[TEXT_AT + at:end].decode(errors="replace") if at else ""

    def _events(self):
        for index in range(max(0, self.head - SLOTS), self.head):
            (sequence, _, _, kind, phase, operation, site, _, dtype, reduce_op, _, count, step, peer, text, detail) = struct.unpack_from(
                "<QQIHBBIHBBQqIiII", self.data, 4096 + index % SLOTS * SLOT)
            if sequence != index + 1:
                self.torn += 1
                continue
            _, file, _, line = struct.unpack_from("<IIII", self.data, SITE_AT + 16 * site)
            yield Event(KINDS.get(kind, str(kind)), phase, count, peer, self._text(text), detail, line if site else 0, self._text(file) if site else "",
                        operation, step, dtype, reduce_op, site)

    def stack(self, event):
        """(file, function, line) of an event's frames, innermost first."""
        frames, site = [], event.site
        while site:
            site, file, function, line = struct.unpack_from("<IIII", self.data, SITE_AT + 16 * site)
            frames.append((self._text(file), self._text(function), line))
        return frames

    def segments(self):
        """Bits of each segment by its name."""
        rows = (struct.unpack_from("<96sQI", self.data, SEGMENT_AT + 120 * i) for i in range(256))
        return {name.split(b"\0")[0].decode(): bits for name, _, bits in rows if bits}

    def waits(self):
        """(thread, kind) of the threads that are waiting."""
        rows = (struct.unpack_from("<II", self.data, WAIT_AT + 24 * i) for i in range(64))
        return [row for row in rows if row[0]]

    def of(self, kind):
        return [event for event in self.events if event.kind == kind]


def rings(folder):
    """Rings of a spool by pid."""
    found = [Ring(path) for path in sorted(Path(folder).glob("*.ring"))]
    return {ring.pid: ring for ring in found}
