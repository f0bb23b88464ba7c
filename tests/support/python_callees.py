# SPDX-License-Identifier: Apache-2.0
"""Calls this and that, then stands, for tests/unit/values/dispatch_reader_test.cc. What stands behind "->" is the function that the call of
the line reaches, read from outside while the program stands in stand()."""
import functools
import sys


class Eager:
    def step(self):
        return 1

    def __call__(self, value):
        return value


class Deferred(Eager):
    def step(self):
        return 2


def double(value, more=0):
    return 2 * value + more


def wrapped(function):
    @functools.wraps(function)
    def inner(*values):
        return function(*values)

    return inner


@wrapped
def half(value):
    return value / 2


class Job:
    def __init__(self, kind):
        self.strategy = {"eager": Eager, "deferred": Deferred}[kind]()
        self.table = {"double": double, "half": half}
        self.bound = functools.partial(double, more=3)
        self.by_name = {"a": double, "b": half}
        self.changed = double
        self.moved = double

    def do_double(self):
        return 4

    def change(self):
        self.changed = half

    def run(self, word):
        self.strategy.step()  # -> Deferred.step (python_callees.py:17)
        self.strategy(3)  # -> Eager.__call__ (python_callees.py:12)
        self.table[word](3)  # -> double (python_callees.py:21)
        self.table["half"](4)  # -> half (python_callees.py:26)
        self.bound(1)  # -> double (python_callees.py:21)
        getattr(self.strategy, "step")()  # -> Deferred.step (python_callees.py:17)
        getattr(self, f"do_{word}")()  # -> Job.do_double (python_callees.py:47)
        for name, function in self.by_name.items():
            function(1)  # -> [double, half]
        for function in self.by_name.values():
            function(1)  # -> [double, half]
        for number, function in enumerate([self.strategy.step]):
            function()  # -> [Deferred.step]
        self.changed(2)  # -> stale now half (python_callees.py:26)
        self.change()
        for number in range(3):
            self.once(number)

    def once(self, number):
        if number == 2:
            stand()
        self.strategy.step()  # -> Deferred.step (python_callees.py:17)
        self.moved(1)  # -> stale now half (python_callees.py:26)
        self.move()

    def move(self):
        self.moved = half


def stand():
    print("ready", flush=True)
    sys.stdin.read()


Job("deferred").run("double")
