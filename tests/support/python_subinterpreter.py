# SPDX-License-Identifier: Apache-2.0
"""Blocks inside a subinterpreter, on the main thread; prints "ready" first. Ends when stdin closes. CPython 3.8 and later."""
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

SCRIPT = """
import os
def inner():
    os.write(1, b"ready\\n")
    os.read(0, 1)
inner()
"""


def enter():
    name = interpreters.create()
    run = getattr(interpreters, "run_string")
    run(name, SCRIPT)


enter()
