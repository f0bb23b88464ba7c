# SPDX-License-Identifier: Apache-2.0
"""Calls of methods of one name on objects of different classes, for tests/unit/values: beside each
call stands the class that memory shows, and "nothing" where the library table has none.
"""
import collections
import os
import queue
import sys
import threading
import time


class Box:
    def get(self):
        return None


class Work:
    def __init__(self):
        self.inbox = queue.Queue()
        self.known = {"a": 1}
        self.box = Box()
        self.done = threading.Event()

    def run(self, late):
        recent = collections.deque([1])
        report = open(os.devnull)
        print("ready", flush=True)
        while late:
            time.sleep(1000)
            self.inbox.get()  # -> queue.Queue
            self.known.get("a")  # -> builtins.dict
            self.box.get()  # -> nothing
            self.done.set()  # -> threading.Event
            recent.pop()  # -> collections.deque
            report.read()  # -> _io.TextIOWrapper
            self.inbox.put(1)  # -> queue.Queue


Work().run(len(sys.argv) > 0)
