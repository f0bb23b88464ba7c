// SPDX-License-Identifier: Apache-2.0
// Calls that run on a GPU: their end is known only if the GPU was queried.
#include <gtest/gtest.h>

#include "collector/sources/rings/reader.h"
#include "tests/unit/sources/ring_in_memory.h"

namespace ddpdoctor::sources {
namespace {

using test::RingInMemory;
using wire::Operation;

RecordedCall only_call(const RingInMemory& memory) {
  const auto recording = read_ring(memory.bytes(), "a.ring");
  return recording && recording->calls.size() == 1 ? recording->calls.front() : RecordedCall{};
}

TEST(RingReaderNccl, DoesNotTakeAnUntrackedCallForAnOpenOne) {
  RingInMemory memory;
  wire::Slot& slot = memory.add_call(memory.add_group("nccl:1", 0, 2), 1, Operation::kAllReduce);
  slot.detail = wire::kOnStream;
  slot.object = 77;
  const RecordedCall call = only_call(memory);
  EXPECT_EQ(call.state, RecordedState::kUnknown);
  EXPECT_EQ(call.stream, 77U);
}

TEST(RingReaderNccl, TakesACallThatNcclHasInProgressForAnOpenOne) {
  RingInMemory memory;
  const std::uint16_t group = memory.add_group("nccl:1", 0, 2);
  memory.add_call(group, 1, Operation::kAllReduce).detail = wire::kOnStream | wire::kInProgress;
  EXPECT_EQ(only_call(memory).state, RecordedState::kEnqueued);
  memory.end_call(group, 1, wire::Phase::kFailed);
  EXPECT_EQ(only_call(memory).state, RecordedState::kFailed);
}

TEST(RingReaderNccl, TellsWhenAThreadAskedHowItsCallGoes) {
  RingInMemory memory;
  const std::uint16_t group = memory.add_group("nccl:1", 0, 2);
  memory.add_call(group, 1, Operation::kCommunicatorInit).detail = wire::kInProgress;
  EXPECT_EQ(read_ring(memory.bytes(), "a.ring")->groups.at(0).asked, 0);
  memory.ring().group[group - 1].asked_tid = 4712;
  memory.ring().group[group - 1].asked_time = 3'000'000'000;
  const auto recording = read_ring(memory.bytes(), "a.ring");
  EXPECT_EQ(recording->groups.at(0).asked_by, 4712);
  EXPECT_DOUBLE_EQ(recording->groups.at(0).asked, 1'700'000'002.0);
  EXPECT_TRUE(recording->calls.at(0).in_progress);
}

TEST(RingReaderNccl, SaysHowManyCallsWereNotFollowed) {
  RingInMemory memory;
  EXPECT_TRUE(read_ring(memory.bytes(), "a.ring")->notes.empty());
  memory.ring().header.untracked = 34;
  const auto recording = read_ring(memory.bytes(), "a.ring");
  ASSERT_EQ(recording->notes.size(), 1U);
  EXPECT_EQ(recording->notes[0],
            "the agent did not record when 34 NCCL calls finished: too many launches were open "
            "at once");
}

TEST(RingReaderNccl, TellsACallThatTheGpuHasBegun) {
  RingInMemory memory;
  const std::uint16_t group = memory.add_group("nccl:1", 0, 2);
  memory.add_call(group, 1, Operation::kAllReduce).detail = wire::kOnStream | wire::kTracked;
  EXPECT_EQ(only_call(memory).state, RecordedState::kEnqueued);
  memory.end_call(group, 1, wire::Phase::kStarted);
  EXPECT_EQ(only_call(memory).state, RecordedState::kStarted);
  memory.end_call(group, 1);
  EXPECT_EQ(only_call(memory).state, RecordedState::kCompleted);
}

TEST(RingReaderNccl, TellsOnWhichDevicesCudaWasStarted) {
  RingInMemory memory;
  memory.ring().header.cuda_contexts = 5;
  memory.add_slot(wire::EventKind::kCudaContext, wire::Phase::kEnqueued).count = 2;
  const auto recording = read_ring(memory.bytes(), "a.ring");
  EXPECT_EQ(recording->cuda_devices, 5U);
  ASSERT_EQ(recording->events.size(), 1U);
  EXPECT_EQ(recording->events[0].kind, "cuda-context");
  EXPECT_EQ(recording->events[0].count, 2);
}

TEST(RingReaderNccl, TellsWhenTheDriverAnsweredLast) {
  RingInMemory memory;
  EXPECT_FALSE(read_ring(memory.bytes(), "a.ring")->driver_answered);
  memory.ring().header.watcher_time = 3'500'000'000;
  EXPECT_DOUBLE_EQ(read_ring(memory.bytes(), "a.ring")->driver_answered.value_or(0),
                   1'700'000'002.5);
}

TEST(RingReaderNccl, DoesNotWaitForWhatAGraphHasCaptured) {
  RingInMemory memory;
  memory.add_call(memory.add_group("nccl:1", 0, 2), 1, Operation::kAllReduce).detail =
      wire::kOnStream | wire::kCaptured;
  EXPECT_EQ(only_call(memory).state, RecordedState::kCompleted);
}

TEST(RingReaderNccl, KnowsTheTypesThatNcclHasAndGlooHasNot) {
  RingInMemory memory;
  wire::Slot& slot = memory.add_call(memory.add_group("nccl:1", 0, 2), 1, Operation::kAllReduce);
  slot.dtype = 24;
  EXPECT_EQ(only_call(memory).dtype, "float8_e4m3fn");
  slot.dtype = 29;
  EXPECT_EQ(only_call(memory).dtype, "uint64");
}

}  // namespace
}  // namespace ddpdoctor::sources
