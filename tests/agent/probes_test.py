# SPDX-License-Identifier: Apache-2.0
"""What the agent's probes of processes, descriptors, shared memory and CUDA write into the ring, and that the calls return the same as
before."""
import sys

from guest import behaves_alike, behaviour, compiled, needs_agent
from rings import rings

pytestmark = needs_agent

RECORDS = "from multiprocessing.shared_memory import SharedMemory\ns = SharedMemory(create=True, size=8192)\n"  # the first event worth a ring
DONE = "\ns.close(); s.unlink()"


def ring_of(script, spool):
    path = spool / "script.py"
    path.write_text(RECORDS + script + DONE)
    folder = spool / "spool"
    folder.mkdir(mode=0o700)
    code, out, err = behaviour([sys.executable, path], spool=folder)
    assert code == 0, err
    return rings(folder), out


def only(found):
    assert len(found) == 1, found
    return next(iter(found.values()))


def test_sizes_of_segments_are_recorded_with_their_line(tmp_path):
    ring = only(ring_of("", tmp_path)[0])
    [size] = ring.of("shm-size")
    assert (size.count, size.peer) == (8192, 0)
    assert size.text.startswith("/psm_") and size.line > 0


def test_children_of_posix_spawn_are_recorded(tmp_path):
    found, out = ring_of("import os\np = os.posix_spawn('/bin/true', ['true'], os.environ); os.waitpid(p, 0); print(p)", tmp_path)
    [fork] = only(found).of("fork")[1:]  # the first is Python's resource tracker
    assert (fork.text, fork.count, fork.line) == ("posix_spawn", int(out), 4)


def test_vfork_is_announced(tmp_path):
    script = "import subprocess\nfor i in range(3): subprocess.run(['/bin/true'], close_fds=True)"
    forks = only(ring_of(script, tmp_path)[0]).of("fork")
    assert len(forks) == 4 and {fork.text for fork in forks} <= {"vfork", ""}


def test_calls_without_a_descriptor_are_recorded_where_they_failed(tmp_path):
    script = ("import errno, os, resource, socket\nhard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\nresource.setrlimit(resource.RLIMIT_NOFILE, (40, hard))\nkept = []\n"
              "for make in (lambda: socket.socket(), lambda: open('/dev/null'), lambda: os.pipe(), lambda: os.eventfd(0)):\n"
              " try:\n  while True: kept.append(make())\n except OSError as e: assert e.errno == errno.EMFILE\n"
              "[k.close() for k in kept if hasattr(k, 'close')]")
    full = only(ring_of(script, tmp_path)[0]).of("descriptors-full")
    assert [event.text for event in full] == ["socket", "open", "pipe", "eventfd"]
    assert all(event.peer == 24 and event.line > 0 for event in full)


def test_a_program_that_fails_for_ever_fills_no_ring(tmp_path):
    script = ("import os, resource\nhard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))\n"
              "for i in range(20000):\n try: os.eventfd(0)\n except OSError: pass\nresource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))")
    assert len(only(ring_of(script, tmp_path)[0]).of("descriptors-full")) == 16


def test_writes_without_room_name_the_file(tmp_path):
    script = "import os\nf = os.open('/dev/full', os.O_WRONLY)\ntry: os.write(f, b'x')\nexcept OSError as e: assert e.errno == 28"
    [event] = only(ring_of(script, tmp_path)[0]).of("no-space")
    assert (event.text, event.peer) == ("/dev/full", 28)


def test_other_errors_are_nobodys_business(tmp_path):
    script = "import os\nfor i in range(9):\n try: os.open('/no/such', 0)\n except OSError as e: assert e.errno == 2"
    assert {event.kind for event in only(ring_of(script, tmp_path)[0]).events} <= {"shm-open", "shm-size", "shm-unlink", "fork", "exit"}


def test_a_child_that_runs_no_fork_handlers_has_a_ring_of_its_own(tmp_path):
    script = ("import ctypes, os\nchild = ctypes.CDLL(None).syscall(57)\nif child == 0:\n t = SharedMemory(create=True, size=64); t.close(); t.unlink(); os._exit(3)\n"
              "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3\nprint(os.getpid(), child)")
    found, out = ring_of(script, tmp_path)
    parent, child = map(int, out.split())
    assert set(found) == {parent, child}
    assert [event.count for event in found[child].of("shm-size")] == [64]
    assert [event.count for event in found[parent].of("shm-size")] == [8192]


VFORK = r'''
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static int child_of_clone(void* word) { _exit(*(int*)word); }
int main(void) {
  close(shm_open("/ddpdoctor_vfork_test", O_CREAT_FLAGS, 0600));
  shm_unlink("/ddpdoctor_vfork_test");
  int sum = 0, status = 0;
  for (int i = 0; i < 1000; ++i) {
    volatile int before = i;
    pid_t child = vfork();
    if (child == 0) { if (i % 3 == 0) execl("/no/such", "x", (char*)0); if (i % 3 == 1) execl("/bin/true", "true", (char*)0); _exit(i & 31); }
    if (before != i || child < 0 || waitpid(child, &status, 0) != child) return 2;
    sum += WEXITSTATUS(status);
  }
  char* stack = malloc(65536); int word = 9;
  pid_t child = clone(child_of_clone, stack + 65536, SIGCHLD_FLAG, &word);
  if (waitpid(child, &status, 0) != child) return 3;
  child = clone(child_of_clone, stack + 65536, CLONE_VM | CLONE_VFORK | SIGCHLD_FLAG, &word);
  if (waitpid(child, &status, 0) != child) return 4;
  if (clone(child_of_clone, NULL, SIGCHLD_FLAG, &word) != -1 || errno != EINVAL) return 5;
  printf("%d %d\n", sum, WEXITSTATUS(status));
  return 0;
}
'''.replace("O_CREAT_FLAGS", "0102").replace("SIGCHLD_FLAG", "17")


def test_vfork_and_clone_return_where_they_must(tmp_path):
    program = compiled(tmp_path, "vforks", VFORK)
    spool = tmp_path / "spool"
    spool.mkdir(mode=0o700)
    code, out, _ = behaves_alike([program], spool)
    assert code == 0 and out.endswith(b" 9\n")
    forks = [event.text for event in only(rings(spool)).of("fork")]
    assert forks == ["vfork"] * 1000 + ["clone"] * 3


DRIVER = "int cuInit(unsigned f) { return f; }\nint cuDevicePrimaryCtxRetain(void** c, int d) { *c = c; return d > 7 ? 101 : 0; }\n"
RUNTIME = "static int now; int cudaSetDevice(int d) { if (d > 7) return 101; now = d; return 0; }\nint cudaMalloc(void** m, unsigned long n) { *m = (void*)n; return now == 5 ? 2 : 0; }\n"
USER = r'''
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int cuInit(unsigned); int cuDevicePrimaryCtxRetain(void**, int); int cudaSetDevice(int); int cudaMalloc(void**, unsigned long);
int use(int step) {
  void* p = 0;
  switch (step) {
    case 0: return cuInit(0);
    case 1: return cuInit(3);
    case 2: return cuDevicePrimaryCtxRetain(&p, 1);
    case 3: return cuDevicePrimaryCtxRetain(&p, 9);
    case 4: return cudaSetDevice(2);
    case 5: return cudaMalloc(&p, 64) + (p == (void*)64 ? 0 : 1000);
    case 6: return cudaSetDevice(5);
    case 7: return cudaMalloc(&p, 64);
    default: return cudaSetDevice(99);
  }
}
'''
MAIN = r'''
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char** words) {
  void* plugin = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  if (!plugin) return puts(dlerror()), 9;
  int (*use)(int) = (int (*)(int))dlsym(plugin, "use");
  for (int i = 0; i < 9; ++i) printf("%d ", use(i));
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) { use(5); use(0); fflush(stdout); _exit(4); }
  int status; waitpid(child, &status, 0);
  printf("child %d\n", WEXITSTATUS(status));
  return 0;
}
'''


def test_cuda_is_seen_through_to_the_callers_own_library(tmp_path):
    compiled(tmp_path, "libcuda.so.1", DRIVER, "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1")
    (tmp_path / "versions").write_text("libcudart.so.12 { global: *; };\n")
    compiled(tmp_path, "libcudart.so.12", RUNTIME, "-shared", "-fPIC", "-Wl,-soname,libcudart.so.12", f"-Wl,--version-script={tmp_path / 'versions'}")
    plugin = compiled(tmp_path, "libuser.so", USER, "-shared", "-fPIC", f"-Wl,-rpath,{tmp_path}", tmp_path / "libcuda.so.1", tmp_path / "libcudart.so.12")
    program = compiled(tmp_path, "program", MAIN)
    spool = tmp_path / "spool"
    spool.mkdir(mode=0o700)
    code, out, _ = behaves_alike([program, plugin], spool)
    assert (code, out) == (0, b"0 3 0 101 0 0 0 2 101 child 4\n")
    found = rings(spool)
    parent = next(ring for ring in found.values() if not ring.of("cuda-after-fork"))
    child = next(ring for ring in found.values() if ring.of("cuda-after-fork"))
    assert [(event.count, event.text) for event in parent.of("cuda")] == [
        (-1, "cuInit"), (1, "cuDevicePrimaryCtxRetain"), (2, "cudaSetDevice"), (5, "cudaSetDevice")]
    [fork] = parent.of("fork")
    assert (fork.count, fork.peer) == (child.pid, 0b100110)
    [used] = child.of("cuda-after-fork")
    assert (used.text, used.peer) == ("cudaMalloc", parent.pid)


def test_a_process_without_cuda_has_none_with_us_either(tmp_path):
    script = "import ctypes\ntry: ctypes.CDLL(None).cuInit(0)\nexcept AttributeError as error: print(error)"
    assert b"undefined symbol: cuInit" in behaves_alike([sys.executable, "-c", script], tmp_path)[1]
    assert not list(tmp_path.iterdir())
