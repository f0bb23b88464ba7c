# SPDX-License-Identifier: Apache-2.0
"""A program that stands with an exception in hand, for tests/unit/stacks/python_exception_test.cc: python_exceptions.py
handled | cleanup | generator | none | printed. Says "ready" when it stands."""
import sys
import threading


class BadSample(Exception):
    pass


def collate(row):
    if row is None:
        raise BadSample("empty row")  # RAISED
    return row


def stand():
    print("ready", flush=True)
    sys.stdin.read()


def handled():
    try:
        collate(None)
    except BadSample:
        stand()


def cleanup():
    try:
        collate(None)
    finally:
        stand()


def generator():
    def rows():
        yield 1
        stand()

    try:
        open("/no/such/file")
    except OSError:
        for _ in rows():
            pass


def none():
    try:
        collate(None)
    except BadSample:
        pass
    stand()


def stand_when_failed():
    while not hasattr(sys, "last_value"):
        threading.Event().wait(0.01)
    stand()


def printed():
    threading.Thread(target=stand_when_failed).start()
    collate(None)


globals()[sys.argv[1]]()
