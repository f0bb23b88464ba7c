# SPDX-License-Identifier: Apache-2.0
import contextlib
import threading
import time

from guards import Guarded


class Repricer(threading.Thread):
    def __init__(self, ledger, order):
        super().__init__(daemon=True, name="repricer")
        self.ledger, self.order = ledger, order

    def run(self):
        while True:
            with contextlib.ExitStack() as held:
                for name in self.order:
                    held.enter_context(Guarded(getattr(self.ledger, name)))
                    time.sleep(0.002)
