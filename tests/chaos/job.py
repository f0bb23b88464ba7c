# SPDX-License-Identifier: Apache-2.0
"""The job of a chaos run: job.py SEED TRUTH. Each of its acts has the same result whatever the machine's load and whatever observes it, and
prints one line about it; SEED selects the acts. What it did to processes is written to TRUTH, one line each: fork PARENT CHILD, kill CHILD
SIGNAL, segment PID BYTES."""
import ctypes
import errno
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time

TRUTH = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
PYTHON = [sys.executable, "-S", "-E"]


def truth(*words):
    os.write(TRUTH, (" ".join(map(str, words)) + "\n").encode())


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def started(child):
    truth("fork", os.getpid(), child)
    return child


def forked(body):
    """A child that calls `body` and exits with its result."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            status = body() or 0
        finally:
            os._exit(status)
    return started(child)


def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def program(text, *words):
    process = subprocess.Popen([*PYTHON, "-c", text, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    started(process.pid)
    return process


def said_by(process):
    out, err = process.communicate()
    return process.returncode, out.decode().strip(), err.decode().strip().splitlines()[-1:]


def strike(child, number):
    truth("kill", child, int(number))
    os.kill(child, number)


def kills(chance):
    """SIGKILL and others, at any moment of a child's life."""
    for _ in range(chance.randrange(1, 6)):
        number = chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1])
        child = forked(lambda: signal.pause())
        time.sleep(chance.random() * 0.02)
        strike(child, number)
        say("kill", ended(child))


def stops(chance):
    """SIGSTOP and SIGCONT of a child that computes."""
    def work():
        return sum(i * i for i in range(200_000)) % 251
    child = forked(work)
    for _ in range(chance.randrange(1, 4)):
        time.sleep(chance.random() * 0.01)
        try:
            os.kill(child, signal.SIGSTOP)
            _, status = os.waitpid(child, os.WUNTRACED)
        except ProcessLookupError:
            break
        if not os.WIFSTOPPED(status):
            say("stop", os.waitstatus_to_exitcode(status))
            return
        time.sleep(chance.random() * 0.01)
        os.kill(child, signal.SIGCONT)
    say("stop", ended(child))


def execs(chance):
    """A child that becomes one program after the other."""
    depth = chance.randrange(1, 6)
    child = forked(lambda: os.execv("/bin/sh", ["sh", "-c", "exec " * 1 + "env -u NONE " * depth + "sh -c 'exit %d'" % (depth + 10)]))
    say("exec", ended(child))
    script = "import os, sys; n = int(sys.argv[1]); n and os.execv(sys.executable, [sys.executable, '-S', '-E', '-c', sys.orig_argv[4], str(n - 1)]); print('last')"
    say("exec", *said_by(program(script, depth)))


def crowd(chance):
    """Hundreds of short-lived children, started in every way."""
    ended_with = []
    for i in range(chance.randrange(100, 300)):
        way = chance.randrange(8)
        if way == 0:
            child = started(os.posix_spawn("/bin/sh", ["sh", "-c", f"exit {i % 7}"], os.environ))
        elif way == 1:
            child = started(os.spawnv(os.P_NOWAIT, "/bin/true", ["true"]))
        else:
            child = forked(lambda: i % 7)
        ended_with.append(ended(child))
    say("crowd", len(ended_with), sum(ended_with))


def swarm(chance):
    """Threads that start and end, some of which have children."""
    sums, count = [], chance.randrange(50, 300)

    def body(i):
        if i % 50 == 0:
            sums.append(ended(forked(lambda: 3)))
        else:
            sums.append(1)
    for _ in range(3):
        threads = [threading.Thread(target=body, args=(i,)) for i in range(count // 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    say("swarm", len(sums), sum(sums))


def full_files(chance):
    """No file may grow beyond this many bytes."""
    limit = chance.choice([0, 1, 4096, 100_000, 3_000_000])
    text = """
import errno, os, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
out, written = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 0
try:
    while True: written += os.write(out, b'x' * 50_000)
except OSError as problem: print(errno.errorcode[problem.errno], written)
os.remove(sys.argv[2])
if os.fork() == 0: os._exit(4)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    say("full", *said_by(program(text, limit, "grows")))
    try:
        os.write(os.open("/dev/full", os.O_WRONLY), b"x")
    except OSError as problem:
        say("full", errno.errorcode[problem.errno])


def no_descriptors(chance):
    """A program that uses up its descriptors counts them."""
    text = """
import errno, os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]),) * 2)
kept = []
try:
    while True: kept.append(os.open('/dev/null', 0))
except OSError as problem: print(errno.errorcode[problem.errno], len(kept), kept[:1], kept[-1:])
child = os.fork()
if child == 0:
    try: os.open('/dev/null', 0)
    except OSError as problem: os._exit(problem.errno)
print(os.waitstatus_to_exitcode(os.wait()[1]))
for each in kept: os.close(each)
print(os.open('/dev/null', 0))
"""
    say("descriptors", *said_by(program(text, chance.choice([4, 5, 8, 20, 64, 300]))))


def low_memory(chance):
    """A program that runs out of memory; it starts with the limit or sets it."""
    text = """
import os, resource, sys, threading
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]) << 20,) * 2)
kept = []
try:
    while True: kept.append(bytearray(1 << 20))
except MemoryError: del kept; print('MemoryError')
if os.fork() == 0: os._exit(5)
print(os.waitstatus_to_exitcode(os.wait()[1]))
t = threading.Thread(target=lambda: print('thread')); t.start(); t.join()
"""
    say("memory", *said_by(program(text, chance.choice([200, 300, 500]))))


def clock(chance):
    """A program whose clocks jump, by a library preloaded in front of libc (clock_steps.c); it reads no clock itself."""
    steps = os.environ.get("CHAOS_CLOCK")
    if not steps:
        return
    text = """
import os, threading, time
for i in range(200):
    time.time(), time.monotonic()
    if i % 40 == 0:
        if os.fork() == 0: os._exit(i // 40)
        print(os.waitstatus_to_exitcode(os.wait()[1]))
event = threading.Event()
threading.Timer(0, event.set).start()
event.wait()
print('set')
"""
    environment = dict(os.environ, LD_PRELOAD=":".join(filter(None, [steps, os.environ.get("LD_PRELOAD")])), CHAOS_CLOCK_SEED=str(chance.randrange(1, 1 << 30)))
    process = subprocess.Popen([*PYTHON, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    started(process.pid)
    say("clock", *said_by(process))


def segments(chance):
    """Shared memory made, sized, shared with a child and removed."""
    libc, size = ctypes.CDLL(None, use_errno=True), chance.randrange(1, 1 << 20)
    for i in range(chance.randrange(1, 4)):
        name = f"/chaos_{os.getpid()}_{i}".encode()
        descriptor = libc.shm_open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        truth("segment", os.getpid(), size)
        os.ftruncate(descriptor, size)
        child = forked(lambda: os.pwrite(descriptor, b"\7", 0) + 20)
        say("segment", ended(child), os.pread(descriptor, 1, 0), os.fstat(descriptor).st_size == size, libc.shm_unlink(name))
        os.close(descriptor)


def signals(chance):
    """Timers, handlers and a broken pipe."""
    seen = []
    signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    for _ in range(chance.randrange(1, 20)):
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        signal.pause() if not seen else None
    signal.setitimer(signal.ITIMER_REAL, 0)
    while not seen:
        time.sleep(0.001)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    process = subprocess.Popen(["/bin/sh", "-c", "trap '' PIPE; (sleep 0; echo late) 2>&-; exit 6"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    started(process.pid)
    process.stdout.close()
    say("signals", process.wait())
    process.stderr.close()


def daemon(chance):
    """A grandchild in a session of its own, which outlives its parent and prints one line."""
    read, write = os.pipe()

    def first():
        os.setsid()
        os.write(write, b"%d" % (os.fork() == 0))
        return 8
    status = ended(forked(first))
    os.close(write)
    words = b"".join(iter(lambda: os.read(read, 16), b""))
    os.close(read)
    say("daemon", status, sorted(words.decode()))


def gloo(chance):
    """Two ranks in a real process group; sometimes one of them ends before its last collective."""
    here = os.path.dirname(os.path.abspath(__file__))
    dies, steps = chance.random() < 0.3, chance.randrange(5, 60)
    environment = dict(os.environ, MASTER_ADDR="127.0.0.1", WORLD_SIZE="2", OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", CHAOS_STORE=os.path.abspath("store"))
    ranks = [subprocess.Popen([sys.executable, os.path.join(here, "ranks.py"), str(steps), str(int(dies))], env=dict(environment, RANK=str(rank)),
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for rank in range(2)]
    for rank in ranks:
        started(rank.pid)
    for rank in ranks:
        out, _ = rank.communicate()
        say("gloo", rank.returncode, out.decode().strip())
    if os.path.exists("store"):
        os.remove("store")


ACTS = [kills, stops, execs, crowd, swarm, full_files, no_descriptors, low_memory, clock, segments, signals, daemon]


def main():
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    chance = random.Random(int(sys.argv[1]))
    segments(random.Random(1))  # the first record, so that there is a ring
    for act in chance.sample(ACTS, chance.randrange(3, 7)):
        act(random.Random(chance.random()))  # the number of random draws may depend on time: the next act has a generator of its own
    if chance.random() < 1 / 12:
        gloo(chance)
    status = chance.choice([0, 0, 0, 1, 7, 255, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGSEGV])
    say("ends with", status)
    if status < 0:
        os.kill(os.getpid(), -status)
    os._exit(status)


main()
