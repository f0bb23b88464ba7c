#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the agent adds to one recorded event and to one collective with its call site: a library that looks like torch's (same names,
empty bodies) is called in a loop from Python frames of several depths, bare and under the agent. Prints figures, asserts nothing.

  agent_calls.py [--calls N] [--agent FILE]      $DDPDOCTOR names the program beside which the agent lies; needs gcc and g++"""
import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
TORCH = r'''
#include <stdint.h>
#include <time.h>
#define G "_ZN4c10d16ProcessGroupGloo"
typedef struct { void *begin, *end, *capacity; } Vector;
void enqueue(void* group, void** work) __asm__(G "7enqueueEN3c1013intrusive_ptrINS0_9AsyncWorkENS1_6detail34intrusive_target_default_null_typeIS3_EEEE");
void finish(void* work) __asm__(G "9AsyncWork14finishWorkGlooEv");
void* allreduce(void* result, void* group, Vector* tensors, void* options) __asm__(G "9allreduceERSt6vectorIN2at6TensorESaIS3_EERKNS_16AllreduceOptionsE");
static char work[64];
void enqueue(void* group, void** w) { __asm__ volatile("" ::"r"(group), "r"(w)); }
void finish(void* w) { __asm__ volatile("" ::"r"(w)); }
void* allreduce(void* result, void* group, Vector* tensors, void* options) {
  void* w = work; enqueue(group, &w); __asm__ volatile("" ::"r"(tensors), "r"(options)); return result;
}
int aoti_torch_get_numel(void* t, int64_t* n) { (void)t; *n = 1048576; return 0; }
int aoti_torch_get_dtype(void* t, int32_t* d) { (void)t; *d = 6; return 0; }
int aoti_torch_get_dim(void* t, int64_t* d) { (void)t; *d = 2; return 0; }
int aoti_torch_get_sizes(void* t, int64_t** s) { static int64_t sizes[2] = {1024, 1024}; (void)t; *s = sizes; return 0; }
double run(int calls) {
  static char group[64], tensor[64], options[64]; void* slot = tensor; Vector tensors = {&slot, &slot + 1, &slot + 1}; void* result[2];
  struct timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  for (int i = 0; i < calls; ++i) { allreduce(result, group, &tensors, options); finish(work); }
  clock_gettime(CLOCK_MONOTONIC, &b);
  return ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / calls;
}
'''
PYTHON = r'''
import ctypes, sys
run = ctypes.CDLL(sys.argv[1]).run
run.restype = ctypes.c_double
def deep(depth, calls): return run(calls) if depth <= 1 else deep(depth - 1, calls)
for depth in (5, 10, 20):
    deep(depth - 1, 20000)
    print(min(deep(depth - 1, int(sys.argv[2])) for _ in range(7)))
'''
EVENTS = r'''
#include <cstdio>
#include <cstdlib>
#include "agent/process_state.h"
#include "agent/record/recorder.h"
namespace ddpdoctor::agent {
ProcessState& process_state() { static constinit ProcessState state{}; return state; }
void become_a_child() {}
}
int main(int, char** words) {
  using namespace ddpdoctor;
  agent::choose_spool(words[1]);
  wire::Ring* const ring = agent::ring_or_make();
  const int calls = std::atoi(words[2]);
  std::uint64_t best = ~0ULL;
  for (int turn = 0; turn < 8 && ring != nullptr; ++turn) {  // the first touches the pages
    const std::uint64_t begin = agent::now();
    for (int i = 0; i < calls; ++i) agent::record(*ring, {.kind = wire::EventKind::kCollective, .site = 7, .group = 1, .count = i});
    const std::uint64_t took = agent::now() - begin;
    best = turn > 0 && took < best ? took : best;
  }
  std::printf("%.1f\n", static_cast<double>(best) / calls);
}
'''


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=200000)
    parser.add_argument("--agent", default=str(Path(os.environ.get("DDPDOCTOR", "")).resolve().parent / "libddpdoctor_agent.so"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "torch.c").write_text(TORCH)
        (folder / "events.cc").write_text(EVENTS)
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", folder / "libtorch_bench.so", folder / "torch.c"], check=True)
        subprocess.run(["g++", "-O2", "-std=c++20", "-fno-exceptions", "-I", SOURCE, "-o", folder / "events", folder / "events.cc",
                        SOURCE / "agent" / "record" / "recorder.cc", SOURCE / "agent" / "record" / "ring_file.cc", SOURCE / "agent" / "record" / "claim.cc", SOURCE / "agent" / "record" / "decimal.cc"], check=True)
        alone = subprocess.run([folder / "events", folder, str(options.calls)], capture_output=True, text=True, check=True).stdout
        print(f"one event: {float(alone):.0f} ns")
        call = [sys.executable, "-c", PYTHON, folder / "libtorch_bench.so", str(options.calls)]
        bare = subprocess.run(call, capture_output=True, text=True, check=True).stdout.split()
        agent = subprocess.run(call, capture_output=True, text=True, check=True,
                               env=dict(os.environ, LD_PRELOAD=options.agent, DDPDOCTOR_SPOOL=text)).stdout.split()
        for depth, without, under in zip((5, 10, 20), bare, agent):
            print(f"one collective (enqueued, tensor, call site, completed) at Python depth {depth:2}: {float(under) - float(without):.0f} ns")
        return 0


if __name__ == "__main__":
    sys.exit(main())
