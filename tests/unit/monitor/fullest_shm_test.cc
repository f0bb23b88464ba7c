// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/fullest_shm.h"

#include <gtest/gtest.h>

#include "collector/model/questions.h"

namespace ddpdoctor::monitor {
namespace {

model::JobModel job_with_exit(int signal) {
  model::JobModel job;
  job.observations.emplace_back();
  model::Process process;
  process.pid = 77;
  process.exit = model::Exit{.status = {}, .signal = signal};
  job.observations.back().processes.push_back(process);
  return job;
}

TEST(FullestShm, KnowsNothingBeforeItLooked) {
  EXPECT_FALSE(FullestShm("/").fact().has_value());
}

TEST(FullestShm, KnowsNothingOfAFolderThatIsNotThere) {
  FullestShm shm("/no/such/folder");
  shm.look();
  EXPECT_FALSE(shm.fact().has_value());
}

TEST(FullestShm, TellsTheFolderAndThatItIsAPeak) {
  FullestShm shm("/");
  shm.look();
  const auto fact = shm.fact();
  ASSERT_TRUE(fact.has_value());
  EXPECT_EQ(fact->text("path"), "/");
  EXPECT_EQ(fact->flag("peak"), true);
  EXPECT_LE(fact->number("bytes_used").value_or(-1), fact->number("bytes_total").value_or(-2));
}

TEST(FullestShm, IsTellingOnlyBesideABusError) {
  FullestShm shm("/");
  shm.look();
  model::JobModel killed = job_with_exit(9);
  add_fullest_shm(shm, killed);
  EXPECT_TRUE(model::facts(killed, "shm-usage").empty());
  model::JobModel bus = job_with_exit(7);
  add_fullest_shm(shm, bus);
  EXPECT_EQ(model::facts(bus, "shm-usage").size(), 1U);
}

TEST(FullestShm, IsToldOfABusErrorOfAStranger) {
  FullestShm shm("/");
  shm.look();
  model::JobModel job;
  job.facts.push_back(
      {.rank = {}, .pid = 78, .kind = "exit", .fields = {{"signal", std::int64_t{7}}}});
  add_fullest_shm(shm, job);
  EXPECT_EQ(model::facts(job, "shm-usage").size(), 1U);
}

}  // namespace
}  // namespace ddpdoctor::monitor
