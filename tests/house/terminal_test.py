# SPDX-License-Identifier: Apache-2.0
"""watch and clean on a terminal: drawn, resized, restored at the end; nothing is removed after a no."""
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif("DDPDOCTOR" not in os.environ, reason="DDPDOCTOR names no ddpdoctor to ask")
LEAVE = b"\x1b[?1049l"
PATIENCE = 30


class Terminal:
    """A program with a terminal of its own."""

    def __init__(self, *words, columns=100, rows=24):
        self.ours, theirs = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(theirs)
        self.theirs, self.seen = theirs, b""
        self.process = subprocess.Popen([os.environ["DDPDOCTOR"], *words], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), env={**os.environ, "TERM": "xterm"})

    def resize(self, columns, rows):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait_for(self, text, since=0):
        end = time.time() + PATIENCE
        while text not in self.seen[since:]:
            ready, _, _ = select.select([self.ours], [], [], max(0, end - time.time()))
            assert ready, f"{text} never came: {self.seen[since:][-500:]}"
            self.seen += os.read(self.ours, 65536)

    def type(self, keys):
        os.write(self.ours, keys)

    def end(self):
        """Exit status, once it has ended by itself; its output is read meanwhile."""
        end = time.time() + PATIENCE
        while self.process.poll() is None and time.time() < end:
            if select.select([self.ours], [], [], 0.05)[0]:
                self.seen += os.read(self.ours, 65536)
        while select.select([self.ours], [], [], 0)[0]:
            self.seen += os.read(self.ours, 65536)
        return self.process.poll()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)


@pytest.fixture
def job():
    process = subprocess.Popen([sys.executable, "-c", "input('reads')"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.read(5) == b"reads"  # the first look shows where it waits
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("quit_by", [b"q", b"\x03", signal.SIGTERM])
def test_watch_quits_cleanly_and_gives_the_terminal_back(job, quit_by):
    with Terminal("watch", str(job.pid), "--interval", "0.2") as terminal:
        terminal.wait_for(b"ddpdoctor watch")
        if isinstance(quit_by, bytes):
            terminal.type(quit_by)
        else:
            terminal.process.send_signal(quit_by)
        assert terminal.end() == 0
        assert terminal.seen.rstrip().endswith(LEAVE)
        assert termios.tcgetattr(terminal.theirs) == terminal.before
    assert job.poll() is None


def test_watch_draws_anew_when_the_terminal_changes_its_size(job):
    with Terminal("watch", str(job.pid), "--interval", "60", columns=100) as terminal:
        terminal.wait_for(b"q quits")
        assert b"the other end" in terminal.seen  # of a line that fits into 100 columns, not into 40
        so_far = len(terminal.seen)
        terminal.resize(40, 10)
        terminal.wait_for(b"q quits", so_far)
        assert b"the other end" not in terminal.seen[so_far:]
        terminal.type(b"q")
        assert terminal.end() == 0


def test_watch_ends_with_the_job(job):
    with Terminal("watch", str(job.pid), "--interval", "0.2") as terminal:
        terminal.wait_for(b"q quits")
        job.stdin.write(b"\n")
        job.stdin.close()
        job.wait()
        assert terminal.end() == 0
        assert LEAVE in terminal.seen and b"ended" in terminal.seen.split(LEAVE)[-1]


def test_watch_without_a_terminal_prints_one_look_as_text(job):
    said = subprocess.run([os.environ["DDPDOCTOR"], "watch", str(job.pid), "--once"], stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout
    assert said.startswith(b"ddpdoctor watch") and b"\x1b" not in said


def test_clean_asks_and_a_no_removes_nothing():
    path = Path(f"/dev/shm/torch_999999999_{os.getpid()}_1")
    path.write_bytes(b"x")
    try:
        with Terminal("clean", "--older-than", "0") as terminal:
            terminal.wait_for(b"[y/N]")
            terminal.type(b"n\n")
            assert terminal.end() == 1
        assert path.exists()
    finally:
        path.unlink()
