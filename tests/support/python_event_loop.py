# SPDX-License-Identifier: Apache-2.0
"""An asyncio program whose loop has nothing to do, for tests/unit/stacks/python_event_loop_test.cc: python_event_loop.py
generator | task | lost | asked. Says "ready" when it stands."""
import asyncio
import os
import sys


class LostSample(Exception):
    pass


async def never():
    loop = asyncio.get_running_loop()
    loop.call_soon(print, "ready")  # called when the task that asks for it is suspended, as every task before it is
    await loop.create_future()


async def rows():
    await never()
    yield 1


async def stand():
    async for _ in rows():
        pass


async def fail():
    raise LostSample("no row")  # RAISED


def end_with_the_test():
    asyncio.get_running_loop().add_reader(sys.stdin, os._exit, 0)  # the test closes it


async def generator():
    end_with_the_test()
    await stand()


async def task():
    end_with_the_test()
    await asyncio.ensure_future(stand())


async def lost():
    failing = asyncio.ensure_future(fail())
    end_with_the_test()
    await stand()
    return failing


async def asked():
    failing = asyncio.ensure_future(fail())
    await asyncio.wait([failing])
    failing.exception()
    end_with_the_test()
    await stand()


sys.stdout.reconfigure(line_buffering=True)
asyncio.run(globals()[sys.argv[1]]())
