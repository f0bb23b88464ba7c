// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collector/model/questions.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::model {
namespace {

/// Five ranks; the last three are ranks 0 to 2 of a job at another port, or what `change` makes of
/// them.
JobModel two_trials(const std::string& second_port, const std::string& second_world) {
  tests::JobBuilder builder = tests::job().ranks(5);
  for (const Rank rank : {0, 1}) {
    builder.environment(rank, "MASTER_PORT", "31134").environment(rank, "WORLD_SIZE", "2");
  }
  for (const Rank rank : {2, 3, 4}) {
    builder.environment(rank, "MASTER_PORT", second_port)
        .environment(rank, "WORLD_SIZE", second_world);
  }
  JobModel told = builder.build();
  for (Observation& look : told.observations) {
    for (Process& process : look.processes) {
      if (process.rank && *process.rank > 1) {
        process.rank = *process.rank - 2;
      }
    }
  }
  return told;
}

TEST(SeveralJobs, AreThoseOfWhichEachIsWhole) {
  EXPECT_TRUE(are_several_jobs(two_trials("31234", "3")));
}

TEST(SeveralJobs, AreThoseWithAPortAndASizeOfTheirOwn) {
  EXPECT_TRUE(are_several_jobs(two_trials("31234", "5")));  // some ranks of it have ended
}

TEST(SeveralJobs, AreNotRanksThatWereToldSomethingWrong) {
  EXPECT_FALSE(are_several_jobs(two_trials("31234", "2")));  // same size, and one rank too many
  EXPECT_FALSE(are_several_jobs(two_trials("31134", "3")));  // one rendezvous: ranks twice
  EXPECT_FALSE(are_several_jobs(tests::job().ranks(4).build()));
  tests::JobBuilder astray = tests::job().ranks(3);
  astray.environment({0, 1}, "MASTER_PORT", "31134").environment(2, "MASTER_PORT", "31143");
  EXPECT_FALSE(are_several_jobs(astray.build()));
}

}  // namespace
}  // namespace ddpdoctor::model
