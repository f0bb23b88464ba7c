// SPDX-License-Identifier: Apache-2.0
// Rings of healthy agents, of agents that were killed while writing, and corrupt ones.
#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "collector/sources/rings/reader.h"
#include "tests/unit/sources/ring_in_memory.h"

namespace ddpdoctor::sources {
namespace {

using test::RingInMemory;
using wire::Operation;

TEST(RingReader, TellsACallAsItWasMade) {
  RingInMemory memory;
  const std::uint16_t group = memory.add_group("0", 1, 2);
  const std::uint32_t main = memory.add_site(0, "/job/train.py", 30);
  const std::uint32_t step = memory.add_site(main, "/job/train.py", 12);
  wire::Slot& slot = memory.add_call(group, 1, Operation::kAllReduce);
  slot.site = step;
  slot.dtype = 6;
  slot.reduce_op = 0;
  slot.count = 8;
  slot.text = memory.add_text("2x4");
  memory.end_call(group, 1);

  const auto recording = read_ring(memory.bytes(), "a.ring");
  ASSERT_TRUE(recording);
  EXPECT_EQ(recording->rank, 1);
  ASSERT_EQ(recording->calls.size(), 1U);
  const RecordedCall& call = recording->calls.front();
  EXPECT_EQ(call.operation, "all_reduce");
  EXPECT_EQ(call.dtype, "float32");
  EXPECT_EQ(call.reduce_op, "sum");
  EXPECT_EQ(call.shape, (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(call.state, RecordedState::kCompleted);
  ASSERT_EQ(call.stack.size(), 2U);
  EXPECT_EQ(call.stack[0].line, 12);
  EXPECT_EQ(call.stack[1].line, 30);
}

TEST(RingReader, SaysWhatTheAgentCouldNotTell) {
  RingInMemory memory;
  std::strcpy(memory.ring().header.python_version, "3.14.0a5");
  EXPECT_TRUE(read_ring(memory.bytes(), "a.ring")->notes.empty());
  memory.ring().header.disabled = wire::kFramesNotAsKnown;
  EXPECT_EQ(read_ring(memory.bytes(), "a.ring")->notes,
            (std::vector<std::string>{
                "no call sites: CPython 3.14.0a5 keeps its frames elsewhere than that release (a "
                "debug, alpha or patched build)"}));
  std::strcpy(memory.ring().header.torch_version, "2.17.0a0");
  memory.ring().header.disabled = wire::kNoReduceOps | wire::kNoRoots;
  EXPECT_EQ(read_ring(memory.bytes(), "a.ring")->notes,
            (std::vector<std::string>{
                "no reduce operations: where torch 2.17.0a0 stores them is unknown",
                "some root ranks are missing: where torch 2.17.0a0 stores them is unknown"}));
}

TEST(RingReader, TellsTagTypeAndWaitOfAMessageOfMpi) {
  RingInMemory memory;
  const std::uint16_t group = memory.add_group("MPI_COMM_WORLD", 1, 2);
  for (const auto phase : {wire::Phase::kEnqueued, wire::Phase::kStarted}) {
    wire::Slot& slot = memory.add_slot(wire::EventKind::kPointToPoint, phase);
    slot.group = group;
    slot.group_sequence = 1;
    slot.operation = static_cast<std::uint8_t>(wire::Operation::kRecv);
    slot.dtype = 28;
    slot.peer = 0;
    slot.detail = wire::kAsync | (6U << wire::kTagShift);
  }
  const auto recording = read_ring(memory.bytes(), "x.ring");
  ASSERT_TRUE(recording);
  ASSERT_EQ(recording->calls.size(), 1U);
  EXPECT_EQ(recording->calls[0].tag, 5);
  EXPECT_EQ(recording->calls[0].dtype, "uint32");
  EXPECT_EQ(recording->calls[0].state, RecordedState::kStarted);
}

TEST(RingReader, ShowsACallThatNeverEndedAsEnqueued) {
  RingInMemory memory;
  const std::uint16_t group = memory.add_group("0", 0, 2);
  memory.add_call(group, 1, Operation::kBarrier);
  memory.end_call(group, 1, wire::Phase::kFailed);
  memory.add_call(group, 2, Operation::kBarrier);
  const auto recording = read_ring(memory.bytes(), "a.ring");
  ASSERT_TRUE(recording);
  ASSERT_EQ(recording->calls.size(), 2U);
  EXPECT_EQ(recording->calls[0].state, RecordedState::kFailed);
  EXPECT_EQ(recording->calls[1].state, RecordedState::kEnqueued);
}

TEST(RingReader, CountsATornSlotAndLeavesItOut) {
  RingInMemory memory;
  const std::uint16_t group = memory.add_group("0", 0, 2);
  memory.add_call(group, 1, Operation::kBarrier).sequence = 0;  // killed before it was published
  memory.add_call(group, 2, Operation::kBarrier);
  const auto recording = read_ring(memory.bytes(), "a.ring");
  ASSERT_TRUE(recording);
  EXPECT_EQ(recording->torn, 1U);
  ASSERT_EQ(recording->calls.size(), 1U);
  EXPECT_EQ(recording->calls[0].sequence, 2);
}

TEST(RingReader, KeepsTheNewestSlotsWhenTheRingHasWrapped) {
  RingInMemory memory;
  const std::uint16_t group = memory.add_group("0", 0, 2);
  for (std::uint32_t i = 1; i <= wire::kSlots + 10; ++i) {
    memory.add_call(group, i, Operation::kBarrier);
  }
  const auto recording = read_ring(memory.bytes(), "a.ring");
  ASSERT_TRUE(recording);
  EXPECT_TRUE(recording->wrapped);
  EXPECT_EQ(recording->calls.size(), wire::kSlots);
  EXPECT_EQ(recording->calls.front().sequence, 11);
}

TEST(RingReader, KnowsTheNewestCallOfAGroupWhoseSlotsWereOverwritten) {
  RingInMemory memory;
  const std::uint16_t quiet = memory.add_group("1", 0, 2);
  const std::uint16_t busy = memory.add_group("0", 0, 2);
  wire::Slot& slot = memory.add_call(quiet, 1, Operation::kAllReduce);
  std::memcpy(static_cast<void*>(&memory.ring().group[quiet - 1].last),
              static_cast<const void*>(&slot), sizeof slot);
  for (std::uint32_t i = 1; i <= wire::kSlots; ++i) {
    memory.add_call(busy, i, Operation::kBarrier);
  }
  const auto recording = read_ring(memory.bytes(), "a.ring");
  ASSERT_TRUE(recording);
  const auto found = std::find_if(recording->calls.begin(), recording->calls.end(),
                                  [](const RecordedCall& call) { return call.group == 0; });
  ASSERT_NE(found, recording->calls.end());
  EXPECT_EQ(found->sequence, 1);
  EXPECT_EQ(found->state, RecordedState::kEnqueued);
}

TEST(RingReader, ReadsSplitsOfAllToAll) {
  RingInMemory memory;
  const std::uint16_t group = memory.add_group("0", 0, 2);
  memory.add_call(group, 1, Operation::kAllToAllSingle).text = memory.add_text("|in=3,4|out=5,2");
  const auto recording = read_ring(memory.bytes(), "a.ring");
  ASSERT_TRUE(recording);
  EXPECT_EQ(recording->calls.at(0).input_splits, (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(recording->calls.at(0).output_splits, (std::vector<std::int64_t>{5, 2}));
}

TEST(RingReader, NamesTheParametersThatAreNotReady) {
  RingInMemory memory;
  wire::Reducer& reducer = memory.ring().reducer[0];
  reducer.object = 0x1000;
  reducer.parameters = 3;
  reducer.generation = 2;
  reducer.parameter[0].ready = 2;
  reducer.parameter[1].ready = 1;
  reducer.parameter[1].name = memory.add_text("router.weight");
  reducer.parameter[2].ready = 2;
  const auto recording = read_ring(memory.bytes(), "a.ring");
  ASSERT_TRUE(recording);
  ASSERT_EQ(recording->reducers.size(), 1U);
  ASSERT_EQ(recording->reducers[0].not_ready.size(), 1U);
  EXPECT_EQ(recording->reducers[0].not_ready[0].name, "router.weight");
  EXPECT_EQ(recording->reducers[0].ready, 2);
}

TEST(RingReader, KeepsTheTailOfStandardErrorInOrder) {
  RingInMemory memory;
  std::memset(memory.ring().standard_error, 'b', wire::kStderrBytes);
  std::memcpy(memory.ring().standard_error, "end", 3);
  memory.ring().header.stderr_head = wire::kStderrBytes + 3;
  const auto recording = read_ring(memory.bytes(), "a.ring");
  ASSERT_TRUE(recording);
  EXPECT_EQ(recording->standard_error.size(), wire::kStderrBytes);
  EXPECT_TRUE(recording->standard_error.ends_with("bbbend"));
}

TEST(RingReader, RefusesWhatIsNoRing) {
  RingInMemory memory;
  EXPECT_FALSE(read_ring(memory.bytes().first(sizeof(wire::Ring) - 1), "cut.ring"));
  EXPECT_FALSE(read_ring({}, "empty.ring"));
  memory.ring().header.magic ^= 1U;
  EXPECT_FALSE(read_ring(memory.bytes(), "magic.ring"));
}

TEST(RingReader, RefusesAnotherVersionAndNamesBoth) {
  RingInMemory memory;
  memory.ring().header.version = wire::kVersion + 8;
  const auto recording = read_ring(memory.bytes(), "new.ring");
  ASSERT_FALSE(recording);
  EXPECT_NE(recording.error().what.find(std::to_string(wire::kVersion + 8)), std::string::npos);
}

TEST(RingReader, EndsWithSitesThatCallEachOther) {
  RingInMemory memory;
  const std::uint16_t group = memory.add_group("0", 0, 2);
  const std::uint32_t a = memory.add_site(0, "/job/a.py", 1);
  const std::uint32_t b = memory.add_site(a, "/job/b.py", 2);
  memory.ring().site[a].caller = b;
  memory.add_call(group, 1, Operation::kBarrier).site = b;
  const auto recording = read_ring(memory.bytes(), "a.ring");
  ASSERT_TRUE(recording);
  EXPECT_EQ(recording->calls.at(0).stack.size(), wire::kSiteDepth);
}

TEST(RingReader, IgnoresNumbersThatPointOutside) {
  RingInMemory memory;
  const std::uint16_t group = memory.add_group("0", 0, 2);
  memory.ring().header.groups = 0xFFFFFFFF;
  memory.ring().header.segments = 0xFFFFFFFF;
  memory.ring().header.exit_kind = 99;
  memory.ring().header.stderr_head = 0xFFFFFFFF;
  memory.add_call(wire::kGroups + 1, 1, Operation::kBarrier);
  memory.add_call(0xFFFF, 1, Operation::kBarrier);
  wire::Slot& slot = memory.add_call(group, 1, Operation::kBarrier);
  slot.site = wire::kSites + 5;
  slot.text = wire::kTextBytes + 5;
  slot.operation = 250;
  const auto recording = read_ring(memory.bytes(), "a.ring");
  ASSERT_TRUE(recording);
  ASSERT_EQ(recording->calls.size(), 1U);
  EXPECT_EQ(recording->calls[0].operation, "unknown");
  EXPECT_TRUE(recording->calls[0].stack.empty());
  EXPECT_FALSE(recording->exit);
}

TEST(RingReader, SurvivesRandomBytesBehindAGoodHeader) {
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    RingInMemory memory;
    std::mt19937_64 random(seed);
    auto* const raw = reinterpret_cast<std::uint64_t*>(&memory.ring());
    for (std::size_t i = offsetof(wire::Header, head) / 8; i < sizeof(wire::Ring) / 8; ++i) {
      raw[i] = random();
    }
    memory.ring().header.head = wire::kSlots * seed;
    for (std::uint64_t i = 0; i < wire::kSlots; ++i) {
      memory.ring().slot[i].sequence = wire::kSlots * (seed - 1) + i + 1;
      memory.ring().slot[i].kind %= 24;
    }
    const auto recording = read_ring(memory.bytes(), "a.ring");
    ASSERT_TRUE(recording);
    EXPECT_LE(recording->groups.size(), wire::kGroups);
    EXPECT_LE(recording->calls.size(), wire::kSlots + wire::kGroups);
  }
}

}  // namespace
}  // namespace ddpdoctor::sources
