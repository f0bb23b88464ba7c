# SPDX-License-Identifier: Apache-2.0
"""Holds locks behind contexts of its own, for tests/unit/values/lock_reader_test.cc."""
import contextlib
import sys
import threading
import time


class Table:
    def __init__(self):
        self.guard = threading.RLock()

    def __enter__(self):
        self.guard.acquire(); return self

    def __exit__(self, *error):
        self.guard.release()

    @contextlib.contextmanager
    def opened(self):
        with self.guard:
            yield self

    @contextlib.contextmanager
    def timed(self):
        yield self


first, second = Table(), Table()
entered = threading.Event()


def hold(other):
    with other:
        entered.set()
        threading.Event().wait()


def wait_for(table):
    with table:
        pass


class Guarded:
    """No name refers to the object of `with Guarded(table):`."""

    def __init__(self, table):
        self.table = table

    def __enter__(self):
        self.take()
        return self.table.rows

    def take(self):
        self.table.guard.acquire()

    def __exit__(self, *error):
        self.table.guard.release()


third, fourth, fifth = Table(), Table(), Table()
for one in (third, fourth, fifth):
    one.rows, one.guard = [], threading.Lock()


def hold_unnamed(entered):
    with Guarded(third) as rows, contextlib.ExitStack() as both:
        for number in range(2):
            both.enter_context(Guarded((fourth, fifth)[number]))
        with plain:
            entered.set()
            with Guarded(third) as rows:  # a second time: waits for ever
                pass


returned, plain = threading.Condition(), threading.Lock()


def give_back():
    with returned:
        returned.wait()


threading.Thread(target=give_back, daemon=True).start()
inside = threading.Event()
threading.Thread(target=hold_unnamed, args=(inside,), daemon=True).start()
inside.wait()
threading.Thread(target=hold, args=(second,), daemon=True).start()
entered.wait()
with first.opened() as rows:
    with first, first.timed():
        threading.Thread(target=wait_for, args=(first,), daemon=True).start()
        time.sleep(0.3)
        print("ready", flush=True)
        sys.stdin.read()
