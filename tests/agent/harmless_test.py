# SPDX-License-Identifier: Apache-2.0
"""Programs that fork, thread, signal and cancel under the agent while it records, and tools with preloads of their own."""
import os
import shutil
import subprocess
import sys
import tempfile

import pytest

from guest import AGENT, behaves_alike, behaviour, compiled, needs_agent, under
from rings import rings

pytestmark = needs_agent

HEAD = r'''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
static void record_something(void) { close(shm_open("/ddpdoctor_harmless", O_RDWR | O_CREAT, 0600)); shm_unlink("/ddpdoctor_harmless"); }
'''


@pytest.fixture
def spool(tmp_path):
    folder = tmp_path / "spool"
    folder.mkdir(mode=0o700)
    return folder


def test_neither_allocates_nor_locks_nor_prints(tmp_path):
    symbols = subprocess.run(["nm", "-D", "--undefined-only", str(AGENT)], capture_output=True, text=True, check=True).stdout
    wanted = {line.split()[-1].split("@")[0] for line in symbols.splitlines()}
    forbidden = {"malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "printf", "fprintf", "snprintf", "fopen", "puts", "exit",
                 "raise", "kill", "pthread_mutex_lock", "sigaction", "signal", "setenv", "putenv", "__cxa_throw", "__cxa_guard_acquire", "__tls_get_addr"}
    assert not wanted & forbidden


def test_survives_ten_thousand_forks(tmp_path, spool):
    program = compiled(tmp_path, "forks", HEAD + r'''
int main(void) {
  record_something();
  int sum = 0, status = 0;
  for (int i = 0; i < 10000; ++i) {
    pid_t child = fork();
    if (child == 0) { if (i % 1000 == 0) record_something(); _exit(i & 63); }
    if (waitpid(child, &status, 0) != child) return 2;
    sum += WEXITSTATUS(status);
  }
  printf("%d\n", sum);
  return 0;
}''')
    assert behaves_alike([program], spool)[0] == 0
    found = rings(spool)
    assert len(found) == 11  # the parent and the ten that had something to record
    assert all(ring.torn == 0 and ring.lost == 0 for ring in found.values())


def test_lets_a_thread_fork_while_others_record(tmp_path, spool):
    program = compiled(tmp_path, "busy", HEAD + r'''
static volatile int stop;
static void* records(void* unused) { while (!stop) record_something(); return unused; }
int main(void) {
  pthread_t thread[4];
  for (int i = 0; i < 4; ++i) pthread_create(&thread[i], 0, records, 0);
  int good = 0;
  for (int i = 0; i < 500; ++i) {
    pid_t child = fork();
    if (child == 0) { record_something(); _exit(5); }
    int status = 0;
    good += waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 5;
  }
  stop = 1;
  for (int i = 0; i < 4; ++i) pthread_join(thread[i], 0);
  printf("%d\n", good);
  return 0;
}''', "-pthread")
    assert behaves_alike([program], spool)[1] == b"500\n"
    found = rings(spool)
    assert len(found) == 501
    children = [ring for ring in found.values() if ring.ppid in found]
    assert all(ring.torn == 0 and [event.kind for event in ring.events] == ["shm-open", "shm-unlink", "exit"] for ring in children)


def test_a_child_forked_while_a_thread_walks_through_the_libraries_finds_functions(tmp_path, spool):
    """glibc does not release the walker's lock in the child."""
    program = compiled(tmp_path, "walks", HEAD + r'''
#include <link.h>
static int inside[2], out[2];
static int walks(struct dl_phdr_info* info, size_t size, void* unused) {
  char byte = 0;
  return write(inside[1], &byte, 1) + read(out[0], &byte, 1) > 0;
}
static void* walker(void* unused) { dl_iterate_phdr(walks, 0); return unused; }
int main(void) {
  pthread_t thread;
  char byte = 0;
  if (pipe(inside) || pipe(out)) return 2;
  pthread_create(&thread, 0, walker, 0);
  read(inside[0], &byte, 1);
  pid_t child = fork();
  if (child == 0) { alarm(60); puts(dlsym(RTLD_DEFAULT, "shm_open") ? "found" : "absent"); fflush(stdout); _exit(0); }
  int status = 0;
  waitpid(child, &status, 0);
  write(out[1], &byte, 1);
  pthread_join(thread, 0);
  printf("%d\n", status);
  return 0;
}''', "-pthread")
    assert behaves_alike([program], spool)[1] == b"found\n0\n"


def test_keeps_errno_in_a_storm_of_signals(tmp_path, spool):
    program = compiled(tmp_path, "storm", HEAD + r'''
static volatile sig_atomic_t seen;
static void handler(int number) {
  int before = errno, fd = open("/dev/null", O_RDONLY);
  write(fd < 0 ? 1 : fd, "", 0); close(fd); shm_unlink("/ddpdoctor_absent"); errno = before; ++seen; (void)number;
}
static void* sends(void* main_thread) {
  for (int i = 0; i < 20000; ++i) pthread_kill(*(pthread_t*)main_thread, SIGUSR1);
  return 0;
}
int main(void) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, 0);
  record_something();
  pthread_t self = pthread_self(), sender;
  pthread_create(&sender, 0, sends, &self);
  int wrong = 0;
  for (int i = 0; i < 20000; ++i) { errno = 77; wrong += write(-1, "", 0) != -1 || errno != EBADF; errno = 77; record_something(); wrong += errno != 77; }
  pthread_join(sender, 0);
  printf("%d %d\n", wrong, seen > 0);
  return 0;
}''', "-pthread")
    assert behaves_alike([program], spool)[1] == b"0 1\n"
    [ring] = rings(spool).values()
    assert ring.torn == 0


def test_records_from_two_thousand_threads_that_end(tmp_path, spool):
    program = compiled(tmp_path, "threads", HEAD + r'''
static void* once(void* unused) { shm_unlink("/ddpdoctor_absent"); return unused; }
int main(void) {
  record_something();
  for (int i = 0; i < 250; ++i) {
    pthread_t thread[8];
    for (int k = 0; k < 8; ++k) pthread_create(&thread[k], 0, once, 0);
    for (int k = 0; k < 8; ++k) pthread_join(thread[k], 0);
  }
  return 0;
}''', "-pthread")
    assert behaves_alike([program], spool)[0] == 0
    [ring] = rings(spool).values()
    assert len(ring.of("shm-unlink")) == 2001 and ring.torn == 0


def test_lets_a_blocked_thread_be_cancelled(tmp_path, spool):
    program = compiled(tmp_path, "cancel", HEAD + r'''
static int cleaned, descriptor;
static void clean(void* unused) { ++cleaned; (void)unused; }
static void* accepts(void* unused) { pthread_cleanup_push(clean, 0); accept(descriptor, 0, 0); pthread_cleanup_pop(0); return unused; }
static void* waits(void* child) { pthread_cleanup_push(clean, 0); waitpid(*(pid_t*)child, 0, 0); pthread_cleanup_pop(0); return 0; }
int main(void) {
  record_something();
  descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
  struct sockaddr name = {.sa_family = AF_UNIX};
  if (bind(descriptor, &name, sizeof(sa_family_t)) || listen(descriptor, 1)) return 2;
  pid_t child = fork();
  if (child == 0) for (;;) pause();
  pthread_t one, two; void* end[2];
  pthread_create(&one, 0, accepts, 0); pthread_create(&two, 0, waits, &child);
  pthread_cancel(one); pthread_cancel(two);
  pthread_join(one, &end[0]); pthread_join(two, &end[1]);
  kill(child, SIGKILL); waitpid(child, 0, 0);
  printf("%d %d %d\n", cleaned, end[0] == PTHREAD_CANCELED, end[1] == PTHREAD_CANCELED);
  return 0;
}''', "-pthread")
    assert behaves_alike([program], spool)[1].endswith(b" 1 1\n")


def test_stays_when_a_program_closes_it(tmp_path, spool):
    program = compiled(tmp_path, "closes", HEAD + r'''
int main(int count, char** words) {
  void* agent = dlopen(words[1], RTLD_NOW | RTLD_NOLOAD);
  if (!agent || count != 2) return 2;
  for (int i = 0; i < 9; ++i) dlclose(agent);
  void* again = dlopen(words[1], RTLD_NOW | RTLD_NOLOAD);
  record_something();
  puts(again == agent ? "still there" : "gone");
  return fork() == 0 ? _exit(0), 0 : wait(0) < 0;
}''')
    assert behaviour([program, AGENT], spool=spool)[:2] == (0, b"still there\n")
    assert rings(spool)


GIT = """set -e
git init -q . ; git config user.email a@b.c ; git config user.name n
for i in 1 2 3; do echo $i > f$i ; git add f$i ; git -c commit.gpgsign=false commit -q --date=2020-01-01T00:00:00 -m m$i ; done
git gc -q ; git log --format=%s ; git status --short | wc -l"""
MAKE = """set -e
printf 'all: a b\\n\\tgcc -o p a.o b.o\\na:\\n\\tgcc -c a.c\\nb:\\n\\tgcc -c b.c\\n' > Makefile
echo 'int b(void) { return 5; }' > b.c ; echo 'int b(void); int main(void) { return b(); }' > a.c
make -s -j4 ; ./p"""
SHELL = """trap 'echo trapped' USR1 ; kill -USR1 $$ ; coproc cat ; echo through >&${COPROC[1]} ; read -u ${COPROC[0]} line ; echo $line
exec {COPROC[1]}>&- ; (ulimit -n 20 ; for i in $(seq 30) ; do echo $i ; done) | tail -1 ; set -m ; sleep 0 & wait $! ; echo $? ; (kill -SEGV $BASHPID) ; echo $?"""


@pytest.mark.parametrize("name,script", [("git", GIT), ("make", MAKE), ("bash", SHELL)])
def test_leaves_tools_as_they_are(name, script, tmp_path, spool):
    if shutil.which(name) is None:
        pytest.skip(f"no {name} here")
    results = []
    for folder, where in (("bare", None), ("guest", spool)):
        (tmp_path / folder).mkdir()
        code, out, err = behaviour(["bash", "-c", script], spool=where, cwd=tmp_path / folder)
        results.append((code, out, b"line" in err))
    assert results[0] == results[1]


def test_leaves_setuid_programs_alone(tmp_path):
    su = shutil.which("su")
    if os.geteuid() != 0 or su is None or not os.stat(su).st_mode & 0o4000:
        pytest.skip("needs root and a setuid su")
    with tempfile.TemporaryDirectory() as open_folder:
        os.chmod(open_folder, 0o755)
        agent = shutil.copy(AGENT, open_folder)
        os.chmod(agent, 0o755)
        variables = dict(os.environ, LC_ALL="C")
        runs = [subprocess.run([su, "--version"], env=env, capture_output=True, user=65534, group=65534, extra_groups=[], cwd="/", timeout=60)
                for env in (variables, dict(variables, LD_PRELOAD=agent, DDPDOCTOR_SPOOL=open_folder))]
    assert [(r.returncode, r.stdout) for r in runs][0] == [(r.returncode, r.stdout) for r in runs][1]


BODY = HEAD + r'''
static void* thread(void* text) { strcpy(text, "thread"); record_something(); return text; }
int main(void) {
  record_something();
  char* text = malloc(16); pthread_t id; int status = 0;
  pthread_create(&id, 0, thread, text); pthread_join(id, 0); puts(text); free(text);
  pid_t child = fork();
  if (child == 0) { record_something(); _exit(3); }
  waitpid(child, &status, 0); printf("%d\n", WEXITSTATUS(status));
  child = vfork();
  if (child == 0) _exit(4);
  waitpid(child, &status, 0); printf("%d\n", WEXITSTATUS(status));
  return 6;
}'''


@pytest.mark.parametrize("kind", ["address", "thread", "undefined"])
def test_stands_behind_a_sanitizers_own_preload(kind, tmp_path, spool):
    program = compiled(tmp_path, "checked", BODY, "-pthread", f"-fsanitize={kind}")
    library = subprocess.run(["gcc", f"-print-file-name=lib{dict(address='asan', thread='tsan', undefined='ubsan')[kind]}.so"],
                             capture_output=True, text=True, check=True).stdout.strip()
    alone = behaviour([program], environment=dict(os.environ, LD_PRELOAD=library))
    if alone[0] != 6:
        pytest.skip(f"the sanitizer itself does not run here: {alone}")
    assert behaviour([program], environment=under(spool, preload=[library])) == alone
    assert rings(spool)


def test_runs_under_valgrind(tmp_path, spool):
    if shutil.which("valgrind") is None:
        pytest.skip("no valgrind here")
    program = compiled(tmp_path, "checked", BODY, "-pthread")
    alone = behaviour(["valgrind", "-q", "--error-exitcode=99", program])
    assert alone[0] == 6
    assert behaviour(["valgrind", "-q", "--error-exitcode=99", program], spool=spool) == alone


# CPython's own tests of what the agent replaces: short subsets; run whole modules by hand (test_signal, test_os, test_selectors, …).
SUITE = [["test_fork1"], ["test_wait4"], ["test_posix", "-m", "*Spawn*", "-m", "*fork*"], ["test_subprocess", "-m", "POSIXProcessTestCase"],
         ["test_threading", "-m", "ThreadJoinOnShutdown"]]


def passes_alike(command, spool, tmp_path):
    bare = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    code, out, err = behaviour(command, spool=spool, environment=bare, limit=200, cwd=tmp_path)
    if code != 0:  # then it must fail without the agent, too
        assert behaviour(command, environment=bare, limit=200, cwd=tmp_path)[0] == code, (out[-3000:], err[-3000:])


@pytest.mark.parametrize("words", SUITE, ids=lambda words: words[0])
def test_passes_what_cpython_passes(words, tmp_path, spool):
    if behaviour([sys.executable, "-c", "import test." + words[0]])[0] != 0:
        pytest.skip("this Python ships no such tests")
    passes_alike([sys.executable, "-m", "test", "-q", *words], spool, tmp_path)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_passes_what_multiprocessing_passes(method, tmp_path, spool):
    if behaviour([sys.executable, "-c", "import test._test_multiprocessing"])[0] != 0:
        pytest.skip("this Python ships no such tests")
    (tmp_path / "methods.py").write_text("import unittest\nfrom test import _test_multiprocessing as tests\n"
                                         f"tests.install_tests_in_module_dict(globals(), {method!r})\nif __name__ == '__main__': unittest.main()\n")
    classes = ["WithProcessesTestProcess.test_process", "WithProcessesTestProcess.test_sentinel", "WithProcessesTestSharedMemory", "WithProcessesTestLock",
               "WithProcessesTestConnection", "WithProcessesTestQueue.test_fork", "WithProcessesTestQueue.test_put"]
    passes_alike([sys.executable, "methods.py", *[word for name in classes for word in ("-k", name)]], spool, tmp_path)
