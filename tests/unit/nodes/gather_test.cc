// SPDX-License-Identifier: Apache-2.0
#include "collector/nodes/gather.h"

#include <gtest/gtest.h>

#include "collector/recording/recording.h"

namespace ddpdoctor::nodes {
namespace {

/// A node with its launcher (pid 9) and two ranks (10, 11), with the pids of a container.
Answer node(int index, const std::string& job = "10.0.0.1:29500 of 4, none") {
  model::JobModel seen;
  seen.world_size = 4;
  seen.hosts = {"box"};
  seen.coverage.unobserved = {index == 1 ? "ranks 2 and 3: run on another machine"
                                         : "ranks 0 and 1: run on another machine"};
  seen.coverage.unobserved_ranks = index == 1 ? model::RankSet{2, 3} : model::RankSet{0, 1};
  seen.coverage.warnings = {"a warning"};
  model::Observation& look = seen.observations.emplace_back();
  look.time = 2e9;
  for (int i = 0; i < 2; ++i) {
    model::Process& process = look.processes.emplace_back();
    process.host = "box";
    process.pid = 10 + i;
    process.rank = (index - 1) * 2 + i;
    process.role = model::Role::kRank;
    process.start_time = 1.9e9;
    process.threads.emplace_back().tid = process.pid;
  }
  return {.node = "node" + std::to_string(index),
          .host = "box",
          .job = job,
          .clock = Clock{.ahead = index == 1 ? 0.0 : 3600.0, .error = 0.001},
          .looked = 2e9 + 0.01 * index,
          .capture = recording::save(seen),
          .problem = {}};
}

TEST(Gather, NodesOfOneNameAreToldApart) {
  const auto job = gather({node(1), node(2)}, {});
  ASSERT_TRUE(job.has_value()) << job.error().what;
  EXPECT_EQ(job->hosts, (std::vector<std::string>{"node1", "node2"}));
  EXPECT_EQ(job->observations.back().processes.size(), 4U);
  EXPECT_EQ(job->coverage.unobserved, std::vector<std::string>{});
  EXPECT_TRUE(job->coverage.unobserved_ranks.empty());
  EXPECT_EQ(job->coverage.warnings, std::vector<std::string>{"a warning"});
}

TEST(Gather, AClockAnHourOffIsSaidAndPutRight) {
  const auto job = gather({node(1), node(2)}, {});
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->coverage.observed[0],
            "2 of 2 nodes answered and took their snapshots within 10 ms of each other");
  EXPECT_NE(job->coverage.observed[1].find("clock of node2 is"), std::string::npos);
  EXPECT_NE(job->coverage.observed[1].find("ahead of that of node1"), std::string::npos);
  for (const model::Process& process : job->observations.back().processes) {
    EXPECT_NEAR(*process.start_time, process.host == "node1" ? 1.9e9 : 1.9e9 - 3600, 0.001);
  }
}

TEST(Gather, WhoDoesNotAnswerIsNamedAndTheRestIsUsed) {
  Answer silent;
  silent.node = "node2";
  silent.problem = {.what = "no answer within 20 s", .hint = "wait"};
  const auto job = gather({node(1), silent}, {});
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->coverage.unobserved.front(), "node2: no answer within 20 s");
  EXPECT_EQ(job->coverage.unobserved_ranks, (model::RankSet{2, 3}));
  const auto nobody = gather({silent}, {});
  ASSERT_FALSE(nobody.has_value());
  EXPECT_EQ(nobody.error().what, "no node gave an answer: node2: no answer within 20 s");
  EXPECT_EQ(nobody.error().hint, "wait");
}

TEST(Gather, GarbageIsAnAnswerThatIsNone) {
  Answer hostile = node(2);
  hostile.capture = std::string(1000, '\x7f');
  const auto job = gather({node(1), hostile}, {});
  ASSERT_TRUE(job.has_value());
  EXPECT_TRUE(job->coverage.unobserved.front().starts_with("node2: its answer is not a capture"));
}

TEST(Gather, DifferentJobsAreNotMixed) {
  const std::string other = "10.0.0.9:29500 of 4, none";
  EXPECT_FALSE(gather({node(1), node(2, other)}, {}).has_value());
  EXPECT_TRUE(gather({node(1), node(2, other)}, {.one_job = true, .unreachable = {}}).has_value());
  // The same rendezvous address with other settings is one job whose settings differ.
  EXPECT_TRUE(gather({node(1), node(2, "10.0.0.1:29500 of 8, none")}, {}).has_value());
  EXPECT_TRUE(gather({node(1), node(2, "")}, {}).has_value());
}

}  // namespace
}  // namespace ddpdoctor::nodes
