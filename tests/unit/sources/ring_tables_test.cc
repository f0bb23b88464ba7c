// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include <gtest/gtest.h>

#include "collector/sources/rings/tables.h"
#include "tests/unit/sources/ring_in_memory.h"

namespace ddpdoctor::sources {
namespace {

using test::RingInMemory;

void add_segment(RingInMemory& memory, const char* name, std::uint32_t bits) {
  wire::Segment& segment = memory.ring().segment[memory.ring().header.segments++];
  std::strcpy(segment.name, name);
  segment.bytes = 4096;
  segment.created = bits;
}

TEST(RingTables, TellWhoMadeASegmentAndWhoMappedIt) {
  RingInMemory memory;
  add_segment(memory, "/made", wire::kSegmentCreated);
  add_segment(memory, "/mapped", wire::kSegmentMapped);
  add_segment(memory, "/both", wire::kSegmentCreated | wire::kSegmentMapped);
  const auto segments = read_segments(RingBytes(memory.bytes()));
  ASSERT_EQ(segments.size(), 3U);
  EXPECT_TRUE(segments[0].created && !segments[0].mapped);
  EXPECT_TRUE(!segments[1].created && segments[1].mapped);
  EXPECT_TRUE(segments[2].created && segments[2].mapped);
}

TEST(RingTables, ListWaitsThatHaveNotEnded) {
  RingInMemory memory;
  wire::Wait& wait = memory.ring().header.wait[5];
  wait.tid = 4712;
  wait.kind = static_cast<std::uint32_t>(wire::WaitKind::kBarrier);
  wait.object = 0x7000;
  wait.since = 3'000'000'000;
  const auto waits = read_waits(RingBytes(memory.bytes()));
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].tid, 4712);
  EXPECT_EQ(waits[0].what, "pthread barrier");
  EXPECT_EQ(waits[0].object, 0x7000U);
  EXPECT_DOUBLE_EQ(waits[0].since, 1'700'000'002);
}

TEST(RingTables, LeaveOutWhatIsBeingFilledAndWhatNobodyKnows) {
  RingInMemory memory;
  wire::Wait* const wait = memory.ring().header.wait;
  wait[0].tid = ~std::uint32_t{0};
  wait[0].kind = 1;
  wait[1].tid = 4712;
  wait[1].kind = 9;
  wait[2].tid = 4713;
  EXPECT_TRUE(read_waits(RingBytes(memory.bytes())).empty());
}

TEST(RingTables, KeepTheOrderOfStderrThatWentRound) {
  RingInMemory memory;
  memory.ring().header.stderr_head = wire::kStderrBytes + 3;
  std::memset(memory.ring().standard_error, 'o', wire::kStderrBytes);
  std::memcpy(memory.ring().standard_error, "new", 3);
  const std::string text = read_stderr(RingBytes(memory.bytes()));
  EXPECT_EQ(text.size(), wire::kStderrBytes);
  EXPECT_TRUE(text.ends_with("new"));
  EXPECT_EQ(text.front(), 'o');
}

}  // namespace
}  // namespace ddpdoctor::sources
