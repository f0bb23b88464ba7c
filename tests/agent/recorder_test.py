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
TAILED = HEAD + r'''
#include <filesystem>
#include <set>
#include "collector/sources/rings/tail.h"
int main(int, char** words) {
  choose_spool(words[1]);
  process_state().pid = 0;
  ddpdoctor::wire::Ring* ring = ring_or_make();
  if (ring == nullptr) return 2;
  ring->header.groups = 1;
  ring->group[0].size = 4;
  ring->group[0].name[0] = '0';
  const auto file = std::filesystem::directory_iterator(words[1])->path().string();
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([writer, ring] {
      for (std::uint32_t i = 0; i < 3000; ++i) {
        const std::uint32_t number = writer * 3000 + i + 1;
        record(*ring, {.kind = ddpdoctor::wire::EventKind::kCollective, .group = 1, .count = number * 7, .group_sequence = number});
      }
    });
  }
  std::vector<std::thread> readers;
  std::vector<long> wrong(2), seen(2);
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&, reader] {
      auto tail = ddpdoctor::sources::RingTail::open(file);
      std::set<std::uint32_t> numbers;
      for (int look = 0; tail && numbers.size() < 12000 && look < 20000; ++look) {
        for (const auto& call : tail->read().calls) {
          wrong[reader] += call.count != call.sequence * 7L || call.group != "0" || !numbers.insert(call.sequence).second;
        }
        std::this_thread::yield();
      }
      seen[reader] = static_cast<long>(numbers.size());
    });
  }
  for (auto& thread : writers) thread.join();
  for (auto& thread : readers) thread.join();
  std::printf("%ld %ld %ld\n", wrong[0] + wrong[1], seen[0], seen[1]);
}
'''


def compiled(folder, text, *flags, more=()):
    if shutil.which("g++") is None:
        pytest.skip("no g++ here")
    (folder / "program.cc").write_text(text)
    parts = [SOURCE / "agent" / "record" / name for name in ("recorder.cc", "ring_file.cc", "claim.cc", "decimal.cc")]
    built = subprocess.run(["g++", "-std=c++20", "-pthread", *([] if more else ["-fno-exceptions"]), "-I", SOURCE, *flags, "-o", folder / "program",
                            folder / "program.cc", *parts, *more], check=False, capture_output=True, text=True)
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


@pytest.mark.parametrize("flags", [["-O2"], ["-O1", "-g", "-fsanitize=thread"]], ids=["plain", "threads"])
def test_two_readers_that_follow_the_ring_see_each_call_once_and_whole(flags, tmp_path):
    spool = tmp_path / "spool"
    spool.mkdir()
    program = compiled(tmp_path, TAILED, *flags, "-DFMT_HEADER_ONLY", more=[SOURCE / "collector" / "sources" / "rings" / "tail.cc"])
    done = subprocess.run([program, spool], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, "0 12000 12000\n"), done.stderr[-2000:]
