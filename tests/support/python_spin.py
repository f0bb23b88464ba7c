# SPDX-License-Identifier: Apache-2.0
"""A thread that never releases the interpreter lock for long; prints its tid. Ends when stdin closes. CPython 3.8 and later."""
import os
import sys
import threading


def spin():
    print(threading.get_native_id(), flush=True)
    while True:
        pass


threading.Thread(target=spin, daemon=True).start()
sys.stdin.read()
os._exit(0)
