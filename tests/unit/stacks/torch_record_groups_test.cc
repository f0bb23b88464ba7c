// SPDX-License-Identifier: Apache-2.0
// Recorded calls of groups that TORCH_DISTRIBUTED_DEBUG=DETAIL left without a name.
#include <gtest/gtest.h>

#include "collector/stacks/torch/record_groups.h"
#include "tests/unit/stacks/torch_image.h"

namespace ddpdoctor::stacks {
namespace {

/// Two groups, and a call with each of these group numbers.
TorchState detail(const std::vector<std::int64_t>& numbers) {
  TorchState state;
  state.groups = {{.name = "0", .description = "default_pg", .backend = "gloo", .ranks = {0, 1}},
                  {.name = "1", .description = "", .backend = "gloo", .ranks = {0, 1}}};
  for (const std::int64_t number : numbers) {
    FlightRecord record = all_reduce(1);
    record.group_id = number;
    record.group_name.clear();
    record.group_description.clear();
    state.records.push_back(record);
  }
  return state;
}

TEST(UnnamedRecords, GetTheNameOfTheWrappedGroup) {
  TorchState state = detail({0, 2});
  name_records(state, 2);
  ASSERT_EQ(state.records.size(), 2U);
  EXPECT_EQ(state.records[0].group_name, "0");
  EXPECT_EQ(state.records[0].group_description, "default_pg");
  EXPECT_EQ(state.records[1].group_name, "1");
  EXPECT_EQ(state.problem, "");
}

TEST(UnnamedRecords, OfTheWrapperAreLeftOut) {
  TorchState state = detail({1, 0, 3, 2});
  name_records(state, 2);
  ASSERT_EQ(state.records.size(), 2U);
  EXPECT_EQ(state.records[0].group_id, 0);
  EXPECT_EQ(state.records[1].group_id, 2);
}

TEST(UnnamedRecords, AreLeftOutWhenGroupsWereDestroyedOrBelongToOthers) {
  for (const std::optional<std::int64_t> made :
       {std::optional<std::int64_t>(3), std::optional<std::int64_t>()}) {
    TorchState state = detail({0, 1, 2});
    state.records.push_back(all_reduce(7));
    name_records(state, made);
    ASSERT_EQ(state.records.size(), 1U);
    EXPECT_EQ(state.records[0].sequence, 7);
    EXPECT_NE(state.problem, "");
  }
}

TEST(UnnamedRecords, OfImpossibleNumbersAreLeftOut) {
  TorchState state = detail({-1, 4, 1LL << 62});
  name_records(state, 2);
  EXPECT_TRUE(state.records.empty());
}

TEST(NamedRecords, AreNotTouched) {
  TorchState state = detail({});
  state.records.push_back(all_reduce(1));
  name_records(state, std::nullopt);
  EXPECT_EQ(state.records.size(), 1U);
  EXPECT_EQ(state.problem, "");
}

}  // namespace
}  // namespace ddpdoctor::stacks
