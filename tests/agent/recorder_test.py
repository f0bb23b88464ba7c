# SPDX-License-Identifier: Apache-2.0
"""The recorder by itself, compiled into programs of its own, also under sanitizers."""
import shutil
import subprocess

import pytest

from guest import SOURCE
from rings import rings

HEAD = r'''
#include <cstdio>
#include <ctime>
#include <thread>
#include <vector>
#include "agent/process_state.h"
#include "agent/record/recorder.h"
namespace ddpdoctor::agent {
ProcessState& process_state() { static constinit ProcessState state{}; return state; }
void become_a_child() {}
}
using namespace ddpdoctor::agent;
'''
CLOCK = HEAD + r'''
static unsigned long long clock_now() { timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000ULL + t.tv_nsec; }
int main() {
  long wrong = 0;
  for (int i = 0; i < 3000000; ++i) {
    const auto before = clock_now();
    const auto told = now();
    const auto after = clock_now();
    wrong += told + 2000 < before || told > after + 2000;
  }
  std::printf("%ld\n", wrong);
}
'''
WRITERS = HEAD + r'''
int main(int, char** words) {
  choose_spool(words[1]);
  process_state().pid = 0;
  ddpdoctor::wire::Ring* const ring = ring_or_make();
  if (ring == nullptr) return 2;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back([ring, t] {
    for (int i = 0; i < 3000; ++i) {
      char text[24];
      const int length = std::snprintf(text, sizeof text, "text %d", i % 50);
      record(*ring, {.kind = ddpdoctor::wire::EventKind::kStore, .count = t * 3000 + i, .text = intern(*ring, text, static_cast<std::size_t>(length))});
    }
  });
  for (std::thread& thread : threads) thread.join();
}
'''


def compiled(folder, text, *flags):
    if shutil.which("g++") is None:
        pytest.skip("no g++ here")
    (folder / "program.cc").write_text(text)
    parts = [SOURCE / "agent" / "record" / name for name in ("recorder.cc", "ring_file.cc", "claim.cc", "decimal.cc")]
    built = subprocess.run(["g++", "-std=c++20", "-fno-exceptions", "-pthread", "-I", SOURCE, *flags, "-o", folder / "program",
                            folder / "program.cc", *parts], check=False, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[-2000:]
    return folder / "program"


def test_tells_the_time_as_the_clock_does(tmp_path):
    program = compiled(tmp_path, CLOCK, "-O2")
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == "0\n"


@pytest.mark.parametrize("flags", [["-O2"], ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
                                   ["-O1", "-g", "-fsanitize=thread"]], ids=["plain", "sanitized", "threads"])
def test_four_writers_lose_and_tear_nothing(flags, tmp_path):
    program = compiled(tmp_path, WRITERS, *flags)
    done = subprocess.run([program, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    [ring] = rings(tmp_path).values()
    assert (ring.torn, ring.lost, len(ring.events)) == (0, 0, 12000)
    assert sorted(event.count for event in ring.events) == list(range(12000))
    assert all(event.text in (f"text {event.count % 3000 % 50}", "") for event in ring.events)
