// SPDX-License-Identifier: Apache-2.0
// Dumps as people paste them: without numbers, colons or first lines, broken by pagers.
#include <gtest/gtest.h>

#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

TEST(PastedDumps, APySpyThreadNeedsNoNumber) {
  const auto job = read_dump(
      "Thread (idle): \"MainThread\"\n    get (queue.py:180)\n    fetch (load.py:455)\n"
      "Thread (idle): \"Thread-3 (_pin_memory_loop)\"\n    select (selectors.py:415)\n");
  ASSERT_EQ(model::latest(job)->processes.size(), 1U);
  EXPECT_EQ(model::latest(job)->processes[0].threads.size(), 2U);
}

TEST(PastedDumps, AGdbHeadingNeedsNoColon) {
  const auto job = read_dump(
      "Thread 58 (Thread 0x15535d20d700 (LWP 1823817)):\n#0  0x00001555 in ncclCommAbort () at "
      "init.cc:1508\n\nThread 1 (Thread 0x15555518b740 (LWP 1811075))\n#0  0x00001555 in ?? () "
      "from /lib64/libcuda.so.1\n");
  ASSERT_EQ(model::latest(job)->processes.size(), 1U);
  EXPECT_EQ(model::latest(job)->processes[0].pid, 1811075);
}

TEST(PastedDumps, ABrokenLineOfGdbGoesOnWithItsPlace) {
  const auto job = read_dump(
      "(gdb) bt\n#0  0x00007f88 in ?? () from /usr/lib/libcuda.so.1\n#1  0x00007f90 in "
      "cudaLaunchKernel ()\n   from /venv/lib/libcudart.so.12\n");
  const auto& frames = only(job).threads.at(0).frames;
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[1].module, "libcudart.so.12");
  EXPECT_EQ(only(job).role, model::Role::kRank);
}

TEST(PastedDumps, AStackWithoutItsEndIsOfTheMainThread) {
  constexpr std::string_view kCut =
      "Thread 3297 (active): \"MainThread\"\n"
      "    all_gather_coalesced (deepspeed/runtime/zero/partition_parameters.py:1254)\n"
      "    wrapped_fn (deepspeed/utils/nvtx.py:18)\n"
      "    forward (transformers/models/mixtral/modeling_mixtral.py:676)\n";
  const model::JobModel job = read_dump(kCut);
  const model::Frame* place = model::user_frame(only(job).threads.at(0));
  ASSERT_NE(place, nullptr);
  EXPECT_EQ(place->line, 1254);
}

}  // namespace
}  // namespace ddpdoctor::imports
