# SPDX-License-Identifier: Apache-2.0
"""Waits in libc, mappings of shared memory, and ends by a signal: what is in the ring, and that no handler is installed for it."""
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from guest import behaves_alike, behaviour, compiled, needs_agent, under
from rings import MADE, MAPPED, rings

pytestmark = needs_agent

BARRIER = r'''
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
static pthread_barrier_t barrier;
static int times;
static void* meets(void* late) { for (int i = 0; i < times; ++i) { if (late) usleep(i ? 0 : 40000); pthread_barrier_wait(&barrier); } return 0; }
int main(int count, char** words) {
  close(shm_open("/ddpdoctor_waits", O_RDWR | O_CREAT, 0600)); shm_unlink("/ddpdoctor_waits");
  times = count > 1 ? 2000 : 1;
  pthread_barrier_init(&barrier, 0, words[0][0] == '-' ? 3 : 2);
  pthread_t one, two;
  pthread_create(&one, 0, meets, 0); pthread_create(&two, 0, meets, &barrier);
  if (words[0][0] == '-') puts("waiting"), fflush(stdout);
  pthread_join(one, 0); pthread_join(two, 0);
  return 7;
}
'''


@pytest.fixture
def spool(tmp_path):
    folder = tmp_path / "spool"
    folder.mkdir(mode=0o700)
    return folder


def only(folder):
    [ring] = rings(folder).values()
    return ring


def test_a_long_wait_at_a_barrier_is_an_event(tmp_path, spool):
    assert behaves_alike([compiled(tmp_path, "meets", BARRIER, "-pthread")], spool)[0] == 7
    [wait] = only(spool).of("wait-end")
    assert wait.text == "pthread_barrier_wait" and wait.count > 10_000_000
    assert not only(spool).waits()


def test_a_thousand_short_waits_push_nothing_out(tmp_path, spool):
    assert behaves_alike([compiled(tmp_path, "meets", BARRIER, "-pthread"), "often"], spool)[0] == 7
    assert 1 <= len(only(spool).of("wait-end")) < 100  # those whose thread the machine kept waiting


def test_who_waits_at_a_barrier_for_ever_stands_in_the_ring(tmp_path, spool):
    program = compiled(tmp_path, "meets", BARRIER, "-pthread")
    process = subprocess.Popen(["-meets"], executable=program, env=under(spool), stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        end = time.monotonic() + 30
        while time.monotonic() < end and len(waiting := only(spool).waits()) < 2:
            time.sleep(0.02)
        assert {int(path.name) for path in Path(f"/proc/{process.pid}/task").iterdir()} - {process.pid} == {tid for tid, _ in waiting}
        assert {kind for _, kind in waiting} == {1}
    finally:
        process.kill()
        process.communicate()
    assert len(only(spool).waits()) == 2  # readable after the end


def test_a_lock_of_multiprocessing_that_is_long_taken_is_an_event(tmp_path, spool):
    script = ("import multiprocessing as m\nfrom multiprocessing.shared_memory import SharedMemory\ns = SharedMemory(create=True, size=64); s.close(); s.unlink()\n"
              "lock = m.Lock(); lock.acquire()\nprint(lock.acquire(timeout=0.05))\n")
    assert behaves_alike([sys.executable, "-c", script], spool)[1] == b"False\n"
    main = next(ring for ring in rings(spool).values() if ring.of("shm-open"))
    [wait] = main.of("wait-end")
    assert wait.text in ("sem_clockwait", "sem_timedwait") and 40_000_000 < wait.count and wait.line == 5


CANCELLED = r'''
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static sem_t never;
static int cleaned;
static void clean(void* unused) { ++cleaned; (void)unused; }
static void* waits(void* unused) { pthread_cleanup_push(clean, 0); sem_wait(&never); pthread_cleanup_pop(0); return unused; }
int main(void) {
  close(shm_open("/ddpdoctor_waits", O_RDWR | O_CREAT, 0600)); shm_unlink("/ddpdoctor_waits");
  sem_init(&never, 0, 0);
  for (int i = 0; i < 100; ++i) {
    pthread_t thread; void* end = 0;
    pthread_create(&thread, 0, waits, 0); usleep(i % 3 * 200); pthread_cancel(thread); pthread_join(thread, &end);
    if (end != PTHREAD_CANCELED) return 2;
  }
  struct timespec until; clock_gettime(CLOCK_REALTIME, &until); until.tv_nsec += 30000000;
  if (until.tv_nsec > 999999999) { ++until.tv_sec; until.tv_nsec -= 1000000000; }
  if (sem_timedwait(&never, &until) == 0) return 3;
  printf("%d\n", cleaned > 50);
  return 0;
}
'''


def test_who_waits_for_a_semaphore_can_be_cancelled(tmp_path, spool):
    assert behaves_alike([compiled(tmp_path, "cancelled", CANCELLED, "-pthread")], spool)[1] == b"1\n"
    assert "sem_timedwait" in [event.text for event in only(spool).of("wait-end")]  # the entries of the dead are free again


MAPS = """import mmap, os, subprocess, sys, tempfile
from multiprocessing.shared_memory import SharedMemory
made = SharedMemory(create=True, size=8192)
code = "import mmap, os, sys; f = os.open('/dev/shm/' + sys.argv[1], os.O_RDWR); m = mmap.mmap(f, 4096); m[0] = 7; print(os.getpid())"
print(made.name, subprocess.run([sys.executable, '-c', code, made.name], capture_output=True, text=True).stdout, made.buf[0])
made.close(); made.unlink()
"""


def test_who_maps_a_segment_is_told_apart_from_who_made_it(tmp_path, spool):
    code, out, err = behaviour([sys.executable, "-c", MAPS], spool=spool)
    assert code == 0, err
    name, user, seen = out.decode().split()
    assert seen == "7"
    found = rings(spool)
    assert found[int(user)].segments() == {"/" + name: MAPPED}
    assert {name: bits for ring in found.values() if ring.pid != int(user) for name, bits in ring.segments().items()} == {"/" + name: MADE | MAPPED}


def test_other_mappings_are_nobodys_business(tmp_path, spool):
    script = ("import mmap, tempfile\nwith tempfile.TemporaryFile() as f:\n f.truncate(8192)\n shared = mmap.mmap(f.fileno(), 8192)\n"
              " private = mmap.mmap(f.fileno(), 8192, flags=mmap.MAP_PRIVATE)\nanonymous = mmap.mmap(-1, 8192)\n"
              "try: mmap.mmap(0, 8192)\nexcept (OSError, ValueError) as e: print(type(e).__name__)")
    behaves_alike([sys.executable, "-c", script], spool, data=b"")
    assert not rings(spool)


def test_a_segment_without_a_name_is_not_listed(tmp_path, spool):
    script = ("import mmap, os\nfrom multiprocessing.shared_memory import SharedMemory\ns = SharedMemory(create=True, size=8192)\n"
              "f = os.open('/dev/shm/' + s.name, os.O_RDWR)\nos.unlink('/dev/shm/' + s.name)\nm = mmap.mmap(f, 8192)\nimport multiprocessing.resource_tracker as r\nr.unregister(s._name, 'shared_memory')")
    assert behaviour([sys.executable, "-c", script], spool=spool)[0] == 0
    assert list(only(spool).segments().values()) == [MADE | MAPPED]


FATAL = [signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTERM, signal.SIGKILL]


@pytest.mark.parametrize("number", FATAL, ids=lambda number: number.name)
@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_a_parent_tells_the_signal_of_its_child(number, shell, tmp_path, spool):
    script = f"{sys.executable} -c 'import os; os.kill(os.getpid(), {int(number)})' & wait $!; echo $?"
    code, out, _ = behaviour([shell, "-c", script], spool=spool)
    assert (code, out) == (0, b"%d\n" % (128 + number))
    told = [event.peer & 0x7F for ring in rings(spool).values() for event in ring.of("child-exit")]
    assert told == [int(number)]


FAULTS = r'''
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <fcntl.h>
int main(int count, char** words) {
  int f = shm_open("/ddpdoctor_faults", O_RDWR | O_CREAT, 0600); shm_unlink("/ddpdoctor_faults");
  char* beyond = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
  char text[4096]; int status = open("/proc/self/status", O_RDONLY); text[read(status, text, sizeof text - 1)] = 0;
  write(1, strstr(text, "SigBlk"), strstr(text, "CapInh") - strstr(text, "SigBlk"));
  volatile int zero = 0;
  switch (words[1][0]) {
    case 's': *(volatile char*)8 = 1; break;
    case 'b': beyond[0] = 1; break;
    case 'f': zero = 5 / zero; break;
    case 'i': __builtin_trap();
    case 'a': abort();
    case 'k': { volatile char deep[1 << 16]; deep[0] = 1; static int (*volatile again)(int, char**) = main; return again(count, words) + deep[0]; }
  }
  return 0;
}
'''


@pytest.mark.parametrize("fault,status", [("s", -11), ("b", -7), ("f", -8), ("i", -4), ("a", -6), ("k", -11)])
def test_faults_end_a_program_as_without_us_and_no_handler_is_there(fault, status, tmp_path, spool):
    program = compiled(tmp_path, "faults", FAULTS)
    code, out, _ = behaves_alike([program, fault], spool)
    assert code == status
    assert re.search(rb"SigCgt:\s+0+\n", out)


def test_faulthandler_finds_the_handlers_it_expects(tmp_path, spool):
    script = ("import faulthandler, os, signal\nprint([signal.getsignal(s) for s in (7, 8, 11, 6, 15)])\nfaulthandler.enable()\nos.kill(os.getpid(), 11)")
    alone, under_us = (behaviour([sys.executable, "-c", script], spool=where) for where in (None, spool))
    assert under_us[:2] == alone[:2] and alone[0] == -11
    assert re.sub(rb"0x\w+", b"", under_us[2]) == re.sub(rb"0x\w+", b"", alone[2])
    assert b"Fatal Python error: Segmentation fault" in alone[2]


def test_no_descriptor_before_there_was_a_ring_is_told_later(tmp_path, spool):
    script = ("import os, resource\nhard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))\n"
              "try: os.eventfd(0)\nexcept OSError as e: print(e.errno)\nresource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))\n"
              "from multiprocessing.shared_memory import SharedMemory\ns = SharedMemory(create=True, size=64); s.close(); s.unlink()")
    assert behaves_alike([sys.executable, "-c", script], spool)[1] == b"24\n"
    told = [ring.events[0] for ring in rings(spool).values() if ring.of("shm-open")]
    assert [(event.kind, event.text, event.peer) for event in told] == [("descriptors-full", "eventfd", 24)]


def test_no_room_is_worth_a_ring(tmp_path, spool):
    assert behaves_alike(["sh", "-c", "echo text > /dev/full"], spool)[0] != 0
    [full] = only(spool).of("no-space")
    assert (full.text, full.peer) == ("/dev/full", 28)


ALLOCATING = """import multiprocessing as m, threading
from multiprocessing.shared_memory import SharedMemory
def work(x):
    threads = [threading.Thread(target=bytearray, args=(1 << 22,)) for _ in range(4)]
    [t.start() for t in threads]; [t.join() for t in threads]
    return x
if __name__ == '__main__':
    s = SharedMemory(create=True, size=8192); s.buf[0] = 7
    with m.get_context('fork').Pool(2) as pool: print(sum(pool.map(work, range(9))), s.buf[0])
    s.close(); s.unlink()
"""


@pytest.mark.parametrize("first", [True, False], ids=["before us", "behind us"])
@pytest.mark.parametrize("name", ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2.0"])
def test_allocators_that_map_for_themselves_start_and_work(name, first, tmp_path, spool):
    library = next(Path("/usr/lib").glob("*/" + name), None)
    if library is None:
        pytest.skip(f"no {name} here")
    (tmp_path / "work.py").write_text(ALLOCATING)
    variables = under(spool, preload=[str(library)])
    if not first:
        variables["LD_PRELOAD"] = ":".join(reversed(variables["LD_PRELOAD"].split(":")))
    done = subprocess.run([sys.executable, "work.py"], env=variables, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, b"36 7\n"), done.stderr
    assert any("/psm_" in name for ring in rings(spool).values() for name in ring.segments())
