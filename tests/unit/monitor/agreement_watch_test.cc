// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/agreement_watch.h"

#include <gtest/gtest.h>

#include "wire/events.h"

namespace ddpdoctor::monitor {
namespace {

sources::CallSignature all_reduce(std::uint32_t sequence) {
  return {.group = "0",
          .group_size = 2,
          .sequence = sequence,
          .operation = static_cast<std::uint8_t>(wire::Operation::kAllReduce),
          .dtype = 6,
          .reduce_op = 0,
          .count = 8,
          .root = -1};
}

bool contradicts(sources::CallSignature first, sources::CallSignature second) {
  AgreementWatch watch;
  EXPECT_FALSE(watch.contradicts(first));
  return watch.contradicts(second);
}

TEST(AgreementWatch, SeesEveryKindOfContradiction) {
  const sources::CallSignature same = all_reduce(1);
  EXPECT_FALSE(contradicts(same, same));
  sources::CallSignature other = same;
  other.operation = static_cast<std::uint8_t>(wire::Operation::kBarrier);
  EXPECT_TRUE(contradicts(same, other));
  other = same;
  other.dtype = 3;
  EXPECT_TRUE(contradicts(same, other));
  other = same;
  other.reduce_op = 4;
  EXPECT_TRUE(contradicts(same, other));
  other = same;
  other.count = 5;
  EXPECT_TRUE(contradicts(same, other));
}

TEST(AgreementWatch, TakesWhatIsUnknownForEqual) {
  sources::CallSignature other = all_reduce(1);
  other.dtype = 255;
  other.reduce_op = 255;
  other.count = -1;
  EXPECT_FALSE(contradicts(all_reduce(1), other));
}

TEST(AgreementWatch, ComparesRootsOfTheSameOperationOnly) {
  sources::CallSignature first = all_reduce(1);
  first.operation = static_cast<std::uint8_t>(wire::Operation::kBroadcast);
  first.root = 0;
  sources::CallSignature second = first;
  EXPECT_FALSE(contradicts(first, second));
  second.root = 1;
  EXPECT_TRUE(contradicts(first, second));
}

TEST(AgreementWatch, LetsAllToAllBeOfAnySize) {
  sources::CallSignature first = all_reduce(1);
  first.operation = static_cast<std::uint8_t>(wire::Operation::kAllToAllSingle);
  sources::CallSignature second = first;
  second.count = 100;
  EXPECT_FALSE(contradicts(first, second));
}

TEST(AgreementWatch, KeepsGroupsAndSequenceNumbersApart) {
  sources::CallSignature other = all_reduce(2);
  other.count = 5;
  EXPECT_FALSE(contradicts(all_reduce(1), other));
  other = all_reduce(1);
  other.group = "1";
  other.count = 5;
  EXPECT_FALSE(contradicts(all_reduce(1), other));
  other.group.clear();
  EXPECT_FALSE(contradicts(all_reduce(1), other));
}

TEST(AgreementWatch, TellsAContradictionOnce) {
  AgreementWatch watch;
  sources::CallSignature first = all_reduce(1);
  first.group_size = 4;
  sources::CallSignature other = first;
  other.count = 5;
  EXPECT_FALSE(watch.contradicts(first));
  EXPECT_TRUE(watch.contradicts(other));
  EXPECT_FALSE(watch.contradicts(other));
}

}  // namespace
}  // namespace ddpdoctor::monitor
