# SPDX-License-Identifier: Apache-2.0
"""Guards around shared tables."""
import threading


class Guarded:
    """`with Guarded(table) as rows:` — one user of a table at a time."""

    gates = {}

    def __init__(self, table):
        self.table = table
        self.gate = Guarded.gates.setdefault(id(table), threading.Lock())

    def _take(self):
        self.gate.acquire()

    def __enter__(self):
        self._take()
        return self.table

    def __exit__(self, *exc):
        self.gate.release()
        return False
