# SPDX-License-Identifier: Apache-2.0
"""Threads blocked in every shape of Python stack we know; each then told as Python itself sees it.

Prints, tab-separated: "thread TID NAME", then its frames innermost first, "frame QUALNAME FILE LINE COLUMN END_LINE END_COLUMN"
(columns as our frames count them; 0 = unknown), "value NAME REPR" of the module's `values`, and "ready". Ends when stdin closes.
Argument "fork": does all that in a forked child. CPython 3.8 and later.
"""
import asyncio
import functools
import os
import sys
import threading
import time

hold = threading.Lock()
hold.acquire()
announced = []


def block(*_):
    announced.append(threading.get_ident())
    hold.acquire()


def deep(n):
    if n == 0:
        block()
    else:
        deep(n - 1)


def generator(n):
    if n:
        yield from generator(n - 1)
    else:
        block()
        yield 1


class Sorted:
    def __init__(self):
        self.by_key()

    def by_key(self):
        return sorted([3, 1, 2], key=self.key)

    def key(self, _):
        block()


def comprehension():
    return [block() for _ in range(3)]


def reduction():
    return functools.reduce(lambda a, b:
                            deep(3), [1, 2, 3])


def mapped():
    return list(map(lambda _: list(generator(5)), [1]))


async def coroutine(n):
    if n:
        await coroutine(n - 1)
    else:
        block()


def event_loop():
    loop = asyncio.new_event_loop()
    loop.run_until_complete(coroutine(4))


def unicode_names():
    def ünïcode_fünction():
        deep(2)
    ünïcode_fünction()


class Meta(type):
    def __call__(cls, *arguments):
        return super().__call__(*arguments)


class WithMeta(metaclass=Meta):
    def __init__(self):
        exec(compile("import sys\n\n\nblock()", "<strïng>", "exec"), {"block": block})


def far_lines():
    # A line table with jumps beyond one byte in code offset and line, forward and backward.
    source = "def far():\n" + "    x = 1\n" * 300 + "    y = (\n" + "\n" * 400 + "      1,\n" + "\n" * 200 + "      block(),\n    )\n"
    space = {"block": block}
    exec(compile(source, "far.py", "exec"), space)
    space["far"]()


def wide_columns():
    source = "def wide():\n    return " + "1 + " * 300 + "len(str(block(\n1,\n2)))\n"
    space = {"block": block}
    exec(compile(source, "wide.py", "exec"), space)
    space["wide"]()


def many_lines():
    numbers = [
        1,


        2,
        (lambda: deep(
            400))(),
    ]
    return numbers


class Warm:
    def __init__(self, wait):
        if wait:
            block()


def warm_constructor():
    for i in range(2000):
        Warm(i == 1999)


def warm_recursion():
    def down(n, wait):
        if n:
            down(n - 1, wait)
        elif wait:
            block()
    for i in range(500):
        down(4, i == 499)


def handlers():
    try:
        try:
            raise ValueError("x")
        except ValueError:
            1 / 0
        finally:
            block()
    except ZeroDivisionError:
        pass


class Manager:
    @property
    def attribute(self):
        block()

    def __enter__(self):
        return self.attribute

    def __exit__(self, *_):
        pass


def with_statement():
    with Manager():
        pass


def closure():
    captured = [1]

    def inner(argument):
        def innermost():
            captured.append(argument)
            block()
        innermost()
    inner("a")


def class_body():
    class Body:
        value = block()


def c_callback():
    try:
        import ctypes
        library = ctypes.CDLL(None)
        signature = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        compare = signature(lambda a, b: block() or 0)
        library.qsort((ctypes.c_int * 2)(2, 1), 2, 4, compare)
    except ImportError:
        block()


def event_wait():
    announced.append(threading.get_ident())
    never.wait()


never = threading.Event()

threads = [lambda: deep(50), lambda: list(generator(10)), Sorted, comprehension, reduction, mapped, event_loop,
           unicode_names, WithMeta, far_lines, wide_columns, many_lines, warm_constructor, warm_recursion, handlers,
           with_statement, closure, class_body, c_callback, event_wait]


class Plain:
    def __init__(self):
        self.first = 1
        self.second = "two"


class Text(str):
    pass


class Pair(tuple):
    pass


class Mapping(dict):
    pass


plain = Plain()
dict_taken = Plain()
dict_taken.__dict__["third"] = 3.5
late = Plain()
late.added_later = (1, 2)
late_extra = [setattr(late, "a%d" % i, i) for i in range(40)]
removed = {str(i): i for i in range(100)}
for i in range(0, 100, 2):
    del removed[str(i)]

values = {
    "none": None, "true": True, "false": False, "zero": 0, "one": 1, "minus": -1, "big": 2**62, "minus_big": -(2**62 + 5),
    "thirty": 2**30, "below": 2**30 - 1, "half": 0.5, "whole": 3.0, "tiny": 1e-300, "huge": 1e22, "inf": float("inf"), "not_a_number": float("nan"),
    "ascii": "plain", "latin": "näme", "wide": "日本", "astral": "a😀b", "empty": "", "bytes": b"raw", "tuple": (1, "a", None), "single": (1,),
    "nothing": (), "list": [1, [2, [3]]], "dict": {"a": 1, 2: "b", None: (1,)}, "text": Text("sub"), "pair": Pair((1, 2)),
    "mapping": Mapping(a=1), "class": int, "removed": removed,
}
large = {str(i): i for i in range(1000)}


def columns_of(frame):
    code = frame.f_code
    if not hasattr(code, "co_positions"):
        return 0, 0, 0
    for i, (_, end_line, column, end_column) in enumerate(code.co_positions()):
        if i == frame.f_lasti // 2:
            return (0 if column is None else column + 1, end_line or 0, 0 if end_column is None else end_column + 1)
    return 0, 0, 0


def print_frames(frame):
    while frame:
        code = frame.f_code
        column, end_line, end_column = columns_of(frame)
        print("frame", getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno or 0, column, end_line, end_column,
              sep="\t")
        frame = frame.f_back


def others():
    """Of every other thread: whether it sleeps, and how often it ran."""
    seen = []
    for tid in sorted(os.listdir("/proc/self/task")):
        if int(tid) != threading.get_native_id():
            with open("/proc/self/task/%s/stat" % tid) as stat, open("/proc/self/task/%s/schedstat" % tid) as runs:
                seen.append((stat.read().rpartition(")")[2].split()[0] == "S", runs.read().split()[2]))
    return seen


def wait_until_blocked():
    # Whoever waits for the interpreter lock only, gets it while we sleep, and then runs or is about to: it is not asleep, or it ran.
    while True:
        before = others()
        time.sleep(0.03)
        if len(announced) == len(threads) and others() == before and all(asleep for asleep, _ in before):
            return


def main():
    sys.stdout.reconfigure(encoding="utf-8")
    if "fork" in sys.argv:
        if os.fork() != 0:
            os.wait()
            return
        print("child", os.getpid(), sep="\t")
    os.environ["MASTER_PORT"] = "12345"
    os.environ["NCCL_DEBUG"] = "INFO"
    os.environ["A_SECRET"] = "never shown"
    started = [threading.Thread(target=t, daemon=True, name="shape-%d" % i) for i, t in enumerate(threads)]
    for thread in started:
        thread.start()
    wait_until_blocked()
    for thread in started:
        print("thread", thread.native_id, thread.name, sep="\t")
        print_frames(sys._current_frames()[thread.ident])
    for name, value in values.items():
        print("value", name, repr(value), sep="\t")
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)


main()
