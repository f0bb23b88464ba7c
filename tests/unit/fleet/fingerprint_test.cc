// SPDX-License-Identifier: Apache-2.0
#include "collector/fleet/fingerprint.h"

#include <gtest/gtest.h>

#include "wire/events.h"

namespace ddpdoctor::fleet {
namespace {

sources::CallSignature call(std::uint32_t sequence, std::int64_t count = 10) {
  sources::CallSignature out;
  out.group = "0";
  out.sequence = sequence;
  out.operation = static_cast<std::uint8_t>(wire::Operation::kAllReduce);
  out.count = count;
  return out;
}

Fingerprint of(std::uint32_t first, std::uint32_t last, std::uint32_t odd = 0) {
  Fingerprint out;
  for (std::uint32_t i = first; i <= last; ++i) {
    out.add(call(i, i == odd ? 11 : 10));
  }
  return out;
}

TEST(Fingerprint, TheSameCallsHaveTheSameHashes) {
  EXPECT_EQ(of(1, 5000).hashes(), of(1, 5000).hashes());
  EXPECT_NE(of(1, 5000).hashes().newest[0], 0U);
}

TEST(Fingerprint, ADifferenceStaysUntilTheEndOfItsBlock) {
  const auto one = of(1, 4096).hashes();
  const auto other = of(1, 4096, 7).hashes();
  EXPECT_NE(one.at_step[2], other.at_step[2]);
  EXPECT_NE(of(1, 20).hashes().at_step[0], of(1, 20, 7).hashes().at_step[0]);
  EXPECT_EQ(of(1, 4100).hashes().newest[0], of(1, 4100, 7).hashes().newest[0]);
}

TEST(Fingerprint, RanksThatAreSomeCallsApartHaveAHashInCommon) {
  const auto ahead = of(1, 43).hashes();
  const auto behind = of(1, 40).hashes();
  EXPECT_EQ(ahead.newest[3], behind.newest[0]);
  EXPECT_EQ(of(1, 47).hashes().at_step[0], of(1, 33).hashes().at_step[0]);
}

TEST(Fingerprint, AfterAGapNothingIsKnownUntilTheNextBlock) {
  Fingerprint late = of(100, 200);
  EXPECT_EQ(late.hashes().newest[0], 0U);
  EXPECT_EQ(late.hashes().at_step[0], 0U);
  for (std::uint32_t i = 201; i <= 4200; ++i) {
    late.add(call(i));
  }
  EXPECT_EQ(late.hashes().newest[0], of(1, 4200).hashes().newest[0]);
  EXPECT_EQ(late.hashes().at_step[2], 0U);  // from the block with the gap
}

TEST(Fingerprint, CallsWhoseSizesMayDifferAreComparedWithoutThem) {
  auto gather = call(1, 5);
  gather.operation = static_cast<std::uint8_t>(wire::Operation::kAllGather);
  auto larger = gather;
  larger.count = 6;
  Fingerprint one;
  one.add(gather);
  Fingerprint other;
  other.add(larger);
  EXPECT_EQ(one.hashes(), other.hashes());
}

TEST(Fingerprint, OneCallOfSeveralPartsCountsOnce) {
  Fingerprint twice;
  twice.add(call(1));
  twice.add(call(1));
  EXPECT_EQ(twice.hashes(), of(1, 1).hashes());
}

}  // namespace
}  // namespace ddpdoctor::fleet
