// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/field_stories.h"

namespace ddpdoctor::detectors {
namespace {

const FieldStory kStory{.kind = "mismatched-dtype",
                        .field = &tests::CallStory::dtype,
                        .usual = "float32",
                        .odd = "float16"};

TEST(MismatchedDtype, NamesTheRankThatDiffers) {
  kStory.expect_the_odd_rank_named();
}

TEST(MismatchedDtype, IsSaidAlsoOfAJobThatMoves) {
  kStory.expect_it_said_of_a_moving_job();
}

TEST(MismatchedDtype, IsSilentWhenAllAgreeOrOneIsUnknown) {
  kStory.expect_silence_when_all_agree_or_one_is_unknown();
}

TEST(MismatchedDtype, AccusesNoUnobservedRank) {
  kStory.expect_no_unobserved_rank_accused();
}

TEST(MismatchedDtype, DoesNotDependOnTheOrderOfRanks) {
  kStory.expect_the_order_of_ranks_not_to_matter();
}

TEST(MismatchedDtype, IsSaidOfABranchAfterWhichAllGoOnAlike) {
  JobBuilder builder = job();
  builder.ranks(2)
      .call(0, {.operation = "all_reduce",
                .sequence = 3,
                .site = "step@/srv/train.py:30",
                .dtype = "float32"})
      .call(1, {.operation = "all_reduce",
                .sequence = 3,
                .site = "log@/srv/train.py:8",
                .dtype = "int32"});
  for (const std::int64_t sequence : {2, 4, 5, 6}) {
    builder.call(kAll, {.operation = "all_reduce",
                        .sequence = sequence,
                        .site = "step@/srv/train.py:30",
                        .dtype = "float32"});
  }
  EXPECT_EQ(asked("mismatched-dtype", moving(builder.build())).size(), 1U);
}

TEST(MismatchedDtype, IsSilentWhereOneRankIsACallAhead) {
  JobBuilder builder = job();
  builder.ranks(3)
      .call({0, 1}, {.operation = "all_reduce",
                     .sequence = 3,
                     .site = "step@/srv/train.py:30",
                     .dtype = "float32"})
      .call({0, 1}, {.operation = "all_reduce",
                     .sequence = 4,
                     .site = "synced@/srv/meter.py:8",
                     .dtype = "float64"})
      .call(2, {.operation = "all_reduce",
                .sequence = 3,
                .site = "synced@/srv/meter.py:8",
                .dtype = "float64"});
  EXPECT_TRUE(asked("mismatched-dtype", builder.build()).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
