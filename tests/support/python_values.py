# SPDX-License-Identifier: Apache-2.0
"""Stands in a function whose names have every kind of value, for tests/unit/values/evaluator_test.cc. Says for each expression below what
Python itself makes of it, "EXPRESSION<TAB>REPR", then "ready". What stands in UNKNOWN may not be worked out from outside."""
import collections
import dataclasses
import enum
import functools
import os
import sys
import time
import types

LIMIT = 7
BIG = 2**63 - 1
os.environ["DDPDOCTOR_TEST_ROLE"] = "leader"


class Mode(enum.Enum):
    READ = "ro"
    WRITE = "rw"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Config:
    amp: bool = True
    steps: int = 10
    name: str = "base"
    mode: Mode = Mode.WRITE


class Slotted:
    __slots__ = ("leader", "missing")

    def __init__(self, leader):
        self.leader = leader


Point = collections.namedtuple("Point", "x y")


class Base:
    kind = "base"
    shared = [1, 2]

    def is_first(self):
        return self.number == 0

    @property
    def even(self):
        """Entered: it only returns."""
        return self.number % 2 == 0

    @property
    def size_class(self):
        if self.number > 100:
            return "large"
        elif self.number > 2:
            return "middle"
        return "small"

    @property
    def noisy(self):
        print("never entered")
        return True

    @staticmethod
    def plus_one(n):
        return n + 1


class Trainer(Base):
    def __init__(self, number):
        self.number = number
        self.ctx = types.SimpleNamespace(leader=number == 3, depth=types.SimpleNamespace(flag=None))
        self.cfg = Config()
        self.items = ["a", "b", "c"]
        self.table = {"lr": 0.5, 3: "three", (1, 2): "pair", None: "none", True: "true"}

    @functools.cached_property
    def cached(self):
        return self.number + 1

    def scaled(self, by, extra=2):
        return self.number * by + extra


class Truthless:
    def __bool__(self):
        return False


class Sized:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n


class Odd:
    def __eq__(self, other):
        return time.time() > 0

    def __getattr__(self, name):
        return time.time()


def helper(a, b=5):
    return a > b


@functools.lru_cache(maxsize=None)
def answered(a, b=5):
    return time.time() > 5 and (a, b)


@functools.lru_cache(maxsize=2)
def answered_last(a):
    return time.time() > 5


def counter():
    total = 0

    def add():
        nonlocal total
        total += 1
        return total

    return add


EXPRESSIONS = """
None
True
3
-3
0x10
1_000
2.5
'text'
number
number == 3
number + 1
number * 2 - 1
number // 2
-number // 2
number % 2
-number % 2
number ** 2
number / 2
number << 2
~number
number & 1 | 4
1 < number <= 3
1 < number < 3
not number
number and 'x'
0 or 'y'
number > 1 and number < 3
flag
flag is True
nothing is None
nothing is not None
text
text == 'hello'
text.startswith('he')
text.upper()
text.strip() in ('hello', 'x')
'ell' in text
'z' not in text
umlaut
len(umlaut)
wide
real
real > 1
real == 2.5
huge
huge > 5
below
BIG == huge
bool(long_one)
not long_one
long_one if number else 0
LIMIT
LIMIT - number
len(items)
items
items[0]
items[-1] == 3
items == [1, 2, 3]
2 in items
9 in items
empty
not empty
bool(items)
pair
pair[1]
pair == (1, 'b')
table['a']
table['b'] > 1
'a' in table
'q' not in table
table.get('a')
table.get('q')
table.get('q', 4)
len(table)
many['key_40']
len(many)
bag
len(bag)
2 in bag
9 in bag
line
len(line)
line[0]
line[-1]
70 in line
blob
len(blob)
span
len(span)
trainer.number
trainer.number == 3
trainer.ctx.leader
trainer.ctx.depth.flag is None
trainer.cfg.amp
trainer.cfg.steps > 5
trainer.cfg.name == 'base'
trainer.cfg.mode
trainer.cfg.mode is Mode.WRITE
trainer.cfg.mode == Mode.READ
trainer.cfg.mode.value
trainer.cfg.mode.name == 'WRITE'
Mode.READ.value
level
level > 1
level == Level.HIGH
level == 2
trainer.items[1]
trainer.table['lr']
trainer.table[3]
trainer.table[(1, 2)]
trainer.table[None]
trainer.kind
trainer.shared[0]
trainer.even
trainer.size_class
trainer.is_first()
trainer.scaled(2)
trainer.scaled(by=3)
trainer.scaled(2, extra=1)
trainer.plus_one(4)
trainer.cached
Trainer.kind
slotted.leader
point.x
point.y > 1
point[0]
point == (1, 2)
isinstance(trainer, Trainer)
isinstance(trainer, Base)
isinstance(trainer, (int, Base))
isinstance(trainer, Config)
isinstance(number, int)
isinstance(flag, int)
isinstance(text, (int, float))
callable(trainer.scaled)
bool(truthless)
not truthless
len(sized)
bool(sized)
bool(trainer)
trainer is None
trainer == None
helper(6)
helper(number)
helper(number, 1)
helper(b=1, a=2)
os.environ['DDPDOCTOR_TEST_ROLE']
os.environ['DDPDOCTOR_TEST_ROLE'] == 'leader'
os.environ.get('DDPDOCTOR_TEST_ROLE')
os.environ.get('DDPDOCTOR_TEST_NOT_THERE')
os.environ.get('DDPDOCTOR_TEST_NOT_THERE', 'x')
os.getenv('DDPDOCTOR_TEST_ROLE', '') != ''
'DDPDOCTOR_TEST_ROLE' in os.environ
int(os.environ.get('DDPDOCTOR_TEST_NOT_THERE', '2')) == 2
int('12')
float(number)
str(number)
abs(-number)
max(number, 9)
min([4, 2, 8])
any([0, '', 3])
all([1, 0])
[x for x in items]
[x * 2 for x in items if x != 2]
len([x for x in items if x > 1]) == 2
any(x > 2 for x in items)
any(x > 5 for x in items)
all(x > 0 for x in items)
all(x for x in empty)
any(x == 2 or time.time() < 5 for x in items)
sum(x for x in items)
sum(items) > 5
[n for n in range(3)]
[k for k, v in table.items() if v > 1]
any(i == 1 and x == 2 for i, x in enumerate(items))
[a + b for a, b in zip(items, items)]
answered(3)
answered('a')
answered(3, 4)
answered_last(3) is True
getattr(trainer, 'number')
getattr(trainer, 'missing', 5)
hasattr(trainer, 'number')
hasattr(trainer, 'missing')
number if flag else 0
(number)
[number, 1]
(number, 'x')
captured
captured + 1
(walrus := number + 2) > 4
lambdas['small'](1)
modules.path.sep
float_nan > 1
1 == 1.0
True == 1
'a' < 'b'
(1, 2) < (1, 3)
""".strip().split("\n")

UNKNOWN = """
trainer.noisy
trainer.missing
not_a_name
unbound
odd == 3
odd.anything
time.time() > 5
add()
[time.time() for x in items]
any(time.time() > 5 for x in items)
[x for x in add]
answered(99)
items[1:]
f'{number}'
long_one + BIG
long_one > 5
1 / 0
table['q']
items[99]
slotted.missing
print('x')
text + 1
recursive()
""".strip().split("\n")


def recursive():
    return recursive()


def stand(captured):
    number, flag, nothing, text = 3, True, None, "hello"
    umlaut, wide, real, float_nan = "gr\u00fc\u00df", "\U0001f600 \u4e2d", 2.5, float("nan")
    huge, below, long_one = BIG, -(2**62), 2**90
    items, empty, pair = [1, 2, 3], [], (1, "b")
    table, many = {"a": 1, "b": 2}, {"key_%d" % i: i for i in range(60)}
    bag, line, blob, span = {1, 2, 5}, collections.deque(range(5, 100)), b"abc", range(3, 9)
    line.popleft()
    trainer, slotted, point = Trainer(number), Slotted("yes"), Point(1, 2)
    level, truthless, sized, odd = Level.HIGH, Truthless(), Sized(4), Odd()
    lambdas = {"small": lambda n: n < 2}
    modules = os
    add = counter()
    trainer.cached
    inner = lambda: captured
    if not flag:
        unbound = 1
        print(unbound, inner)
    for expression in EXPRESSIONS:
        said = repr(eval(expression, globals(), dict(locals())))
        print(expression + "\t" + said.replace("\n", " "))
    print("unknown")
    for expression in UNKNOWN:
        print(expression + "\t")
    print("ready", flush=True)
    sys.stdin.read()


stand(11)
