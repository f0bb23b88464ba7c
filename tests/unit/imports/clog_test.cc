// SPDX-License-Identifier: Apache-2.0
// Logs of torchcomms' ClogHook.
#include "collector/imports/clog.h"

#include <gtest/gtest.h>

namespace ddpdoctor::imports {
namespace {

constexpr std::string_view kLog =
    "V|1|base_timestamp=1714234567.890\n"
    "new_comm|comm=world|rank=3|world_size=8\n"
    "split|parent=world|child=tp|ranks=2,3\n"
    "new_comm|comm=tp|rank=1|world_size=2\n"
    "C1|sig|all_reduce|in_count=1024|out_count=1024|dtype=bf16|red_op=sum|async_op=f|comm=world\n"
    "C1|Q|work_id=1|+0.001\n"
    "C1|S|+0.002\n"
    "C1|E|+0.005\n"
    "C2|sig|all_to_all_v_single|in_splits=1,3|out_splits=3,1|dtype=f32|async_op=f|comm=tp\n"
    "C2|Q|work_id=2|+0.010\n"
    "C1|Q|work_id=3|+0.012\n"
    "C1|S|+0.013\n"
    "C9|Q|work_id=3|+0.012\n"
    "G42|C1|Q|work_id=4|+1.000\n"
    "WARN|nothing\n";

TEST(Clog, SaysWhatARankCalledAndHowFarItCame) {
  ASSERT_TRUE(is_clog(kLog, "x"));
  const auto job = read_clog(kLog, "x");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->world_size, 8);
  ASSERT_EQ(job->groups.size(), 2U);
  EXPECT_EQ(job->groups[1].ranks, (std::vector<model::Rank>{2, 3}));
  ASSERT_EQ(job->collectives.size(), 3U);
  EXPECT_EQ(job->collectives[0].rank, 3);
  EXPECT_EQ(job->collectives[0].state, model::CallState::kCompleted);
  EXPECT_EQ(job->collectives[0].dtype, "bfloat16");
  EXPECT_EQ(job->collectives[1].operation, "all_to_all_single");
  EXPECT_EQ(job->collectives[1].splits, (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(job->collectives[2].sequence, 2);
  EXPECT_EQ(job->collectives[2].state, model::CallState::kStarted);
}

TEST(Clog, WithoutACommunicatorNothingIsSaid) {
  EXPECT_FALSE(read_clog("V|1|base_timestamp=1\nC1|Q|work_id=1|+0\n", "x"));
  EXPECT_FALSE(is_clog("V|1\n|base_timestamp=", "x"));
}

}  // namespace
}  // namespace ddpdoctor::imports
