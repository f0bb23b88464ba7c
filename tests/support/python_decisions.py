# SPDX-License-Identifier: Apache-2.0
"""Decides this and that, then stands, for tests/unit/values/observe_test.cc. What stands behind "->" is what the decision of the line comes
out to, read from outside while the program stands in stand(), and behind "since" what it is with that Python and newer ones."""
import contextlib
import functools
import itertools
import sys


def chiefs_only(function):
    @functools.wraps(function)
    def inner(world, *others, **more):
        if world.rank > 0:  # -> False
            return None
        return function(world, *others, **more)

    return inner


@chiefs_only
def publish(world, step):
    number = world.rank
    if number == 0:  # -> True
        return


@contextlib.contextmanager
def turn(world):
    number = world.rank
    if number:  # -> False
        return
    yield number


class Policy:
    """Made for one question."""

    def __init__(self, rank, limit=3):
        self.rank = rank
        self.limit = limit

    @property
    def lets_in(self):
        return self.rank < self.limit


def made(world):
    if Policy(world.rank).lets_in:  # -> True
        return
    if Policy(world.rank, limit=0).lets_in:  # -> False
        return


def passed(value):
    if value > 3:  # -> stale now False
        return


def counts(world):
    was = world.seen
    if was > 2:  # -> unknown: `was` has no value yet
        return
    world.seen = was + 1


def ahead(world):
    if world.chief:  # -> stale now True
        return


class World:
    def __init__(self, rank):
        self.rank = rank
        self.best = 5
        self.seen = 7
        self.rows = [1, 2]

    def full(self):
        return len(self.rows) > 1

    def share(self):
        self.rows = self.rows[2:]
        stand_for({"x", "y"})

    def drop(self):
        self.rows.clear()

    @property
    def chief(self):
        return self.rank == 0

    @property
    def owner(self):
        number = self.rank
        if number is None:
            raise ValueError("not yet")
        return number == 0

    def lower(self):
        self.best = 1


def stand():
    print("ready", flush=True)
    sys.stdin.read()


def log(world, loss, every=2):
    if world.chief:  # -> True
        return
    loss = loss + 1
    if loss > 3:  # -> stale now True
        return
    if every == 2:  # -> True
        return


def shares(world):
    if world.full():  # -> stale now False
        world.rows.append(3)
    if world.full() and world.rank < 7:  # -> True
        world.share()


def drops(world):
    if world.full():  # -> stale now False
        world.drop()
    shares(World(0))


def later(world):
    if world.chief:  # -> True
        return


def stand_for(names):
    return {name: stand() for name in sorted(names)}  # -> iteration 1 of 2; since 3.12: nothing


def train(world, mode, todo, secret_token):
    if world.owner:  # -> True
        before = 0
    before = 1
    passed(before)
    if mode == "rw":  # -> True
        before = 2
    if before == 2:  # -> stale now False
        before = 3
    if world.best > 3:  # -> stale now False
        world.lower()
    for name in {"a": 1, "b": 2, "c": 3}.values():  # -> iteration 1 of 3
        while True:  # -> nothing
            walk(world, mode, todo)
            break


def walk(world, mode, todo):
    for step in range(9):  # -> iteration 5 of 9
        if step % 2 == 1:  # -> False
            print(step)
        if step == 4:  # -> True
            log(world, 7)
            drops(World(0))
            later(world)
            publish(world, step)
            with turn(world):
                counts(world)
            made(world)
    while todo:  # -> stale now True
        todo.pop()
    ahead(world)


class Sized:
    def __init__(self, steps):
        self.steps = steps

    def __len__(self):
        return self.steps + 1

    def __iter__(self):
        return iter(range(self.steps))


def doubled(names):
    """One value for each name."""
    twice = 2
    for name in names:
        changed = name * twice
        yield changed


def some(names):
    for name in names:
        if name != "b":
            yield name


def loops(world, steps):
    names = ["a", "b", "c"]
    for _ in range(steps):  # -> ended, of 4 in all
        pass
    for _ in range(2, steps + 7, 4):  # -> ended, of 3 in all
        pass
    for _ in range(steps, 0, -3):  # -> ended, of 2 in all
        pass
    for number, name in enumerate(names):  # -> ended, of 3 in all
        print(number, name)
    for name, number in zip(names, range(2)):  # -> ended, of 2 in all
        print(number, name)
    for name in itertools.islice(names, 1):  # -> ended, of 1 in all
        print(name)
    for name in {"lr": 1, "wd": 2}.items():  # -> ended
        print(name)
    for name in Sized(steps):  # -> ended
        print(name)
    sized = Sized(steps)
    for name in sized:  # -> ended, of 4 in all
        print(name)
    for name in doubled(names):  # -> ended, of 3 in all
        print(name)
    for name in some(names):  # -> ended
        print(name)
    for name in (name for name in names):  # -> ended
        print(name)
    for name in names:  # -> ended
        if name == "b":
            break
    kept = [1, 2]
    for name in kept:  # -> ended
        print(name)
    kept.append(3)
    for name in reversed(kept):  # -> ended, of 3 in all
        print(name)
    train(world, "rw", [1, 2], "hunter2")


def check(row):
    if row == 0:
        raise ValueError("empty row")


def handles(world, rows):
    skipped, kept = 0, 0
    try:
        check(0)
    except ValueError:  # -> unknown: its handler has ended, and Python has deleted the exception
        kept = 1
    for row in rows:  # -> iteration 3 of 4
        try:
            check(row)
        except ValueError:  # -> no exception in this iteration
            skipped += 1
            continue
        try:
            kept = 2
        except OSError:  # -> no exception in this iteration
            return
        else:
            try:
                check(0)
            except ValueError as error:  # -> ValueError('empty row')
                loops(world, 4)


def numbers(count):
    for number in range(count):  # -> iteration 3 of 9; since 3.12: iteration 3 of 9
        if number < 2:  # -> False
            yield number
        else:
            yield -number


def draws(world):
    for place, number in enumerate(numbers(9)):  # -> numbers() in iteration 3, 6 to come; since 3.12: numbers() with 6 to come
        if place == 2:  # -> True
            handles(world, [0, 0, 5, 6])


@contextlib.contextmanager
def paused(pause):
    if pause == "now":
        yield pause


def begins(world):
    with paused("now"):
        for name in doubled(["x", "y", "z"]):  # -> iteration 1 of 3
            draws(world)
            print(name)


begins(World(0))
