# SPDX-License-Identifier: Apache-2.0
"""A parent that ends its children: the ring shows which ones it ended and which had failed before; other signals and processes are not
recorded."""
import signal
import sys

import pytest

from guest import behaves_alike, behaviour, compiled, needs_agent
from rings import rings

pytestmark = needs_agent
SENT, CAME_LATE = 0, 2  # phases

ENDS = r'''
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static pid_t child(int ends) {
  pid_t pid = fork();
  if (pid == 0) { setsid(); if (ends) raise(SIGKILL); for (;;) pause(); }
  return pid;
}
int main(void) {
  pid_t alive = child(0), dead = child(1), leader = child(0);
  siginfo_t info;
  waitid(P_PID, dead, &info, WEXITED | WNOWAIT);
  while (getpgid(leader) != leader) {}
  errno = 77;
  int ok = kill(alive, SIGKILL) == 0 && kill(dead, SIGKILL) == 0 && killpg(leader, SIGTERM) == 0 && errno == 77;
  int status;
  for (int i = 0; i < 3; ++i) wait(&status);
  printf("%d %d %d %d\n", ok, alive, dead, leader);
  return kill(alive, SIGKILL) == -1 && errno == ESRCH ? 0 : 1;
}
'''


@pytest.fixture
def spool(tmp_path):
    folder = tmp_path / "spool"
    folder.mkdir(mode=0o700)
    return folder


def sent(folder):
    return [(event.count, event.peer, event.phase) for ring in rings(folder).values() for event in ring.of("signal-sent")]


def test_who_was_on_its_way_out_is_told_from_whom_the_parent_ended(tmp_path, spool):
    code, out, err = behaviour([compiled(tmp_path, "ends", ENDS)], spool=spool)
    assert code == 0, err
    ok, alive, dead, leader = map(int, out.split())
    assert ok == 1
    assert sent(spool) == [(alive, signal.SIGKILL, SENT), (dead, signal.SIGKILL, CAME_LATE), (leader, signal.SIGTERM, SENT)]


SHELL = "exec 2>/dev/null; sleep 60 & p=$!; kill -9 $p; wait $p; echo $?"
PYTHON = "import os, signal, subprocess\np = subprocess.Popen(['sleep', '60'])\nos.kill(p.pid, signal.SIGTERM)\nprint(p.wait())"


@pytest.mark.parametrize("command,number", [(["bash", "-c", SHELL], 9), (["dash", "-c", SHELL], 9), ([sys.executable, "-c", PYTHON], 15)])
def test_shells_and_python_are_seen(command, number, spool):
    behaves_alike(command, spool)
    assert [(event[1], event[2]) for event in sent(spool)] == [(number, SENT)]


OTHERS = ("import os, signal, subprocess\nsignal.signal(signal.SIGUSR1, lambda *_: None)\nos.kill(os.getpid(), signal.SIGUSR1)\nos.kill(os.getpid(), 0)\n"
          "p = subprocess.Popen(['cat'], stdin=subprocess.PIPE)\nos.kill(p.pid, 0)\nos.kill(p.pid, signal.SIGCONT)\nos.killpg(os.getpgrp(), 0)\n"
          "p.communicate()\ntry: os.kill(2**22 + 5, signal.SIGTERM)\nexcept ProcessLookupError: print('gone')")


def test_other_signals_and_other_processes_are_nobodys_business(spool):
    behaves_alike([sys.executable, "-c", OTHERS], spool)
    assert not rings(spool)
