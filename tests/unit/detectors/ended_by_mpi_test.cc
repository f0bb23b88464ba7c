// SPDX-License-Identifier: Apache-2.0
// Ranks that call MPI_Abort, calls of MPI that fail, and MPI's messages about both.
#include "collector/detectors/partings/ended_by_mpi.h"

#include "collector/detectors/evidence/mpi_words.h"
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "rank-raised";

JobBuilder& ended_at(JobBuilder& story, model::Rank rank, const std::string& call, double time = 1,
                     std::int64_t line = 14) {
  return story.fact("ended-at",
                    {{"call", call},
                     {"status", std::int64_t{5}},
                     {"time", time},
                     {"file", std::string("/srv/job.c")},
                     {"line", line},
                     {"function", std::string("main")}},
                    rank);
}

TEST(EndedByMpi, ARankThatCallsMpiAbortIsTheCulpritAtThatLine) {
  JobBuilder story = job().ranks(4).exited(3, 5).ended();
  const Findings findings = asked(kKind, ended_at(story, 3, "MPI_Abort").build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{3});
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].locations.at(0).line, 14);
  EXPECT_NE(findings[0].summary.find("called MPI_Abort"), std::string::npos);
}

TEST(EndedByMpi, WhoAbortsAtOneLineIsOneFindingAndWhoFailsAfterIsNone) {
  JobBuilder story = job().ranks(4).exited(kAll, 5).ended();
  ended_at(story, 1, "MPI_Abort", 2.0);
  ended_at(story, 3, "MPI_Abort", 1.0);
  ended_at(story, 0, "MPI_Allreduce", 0.5, 20);
  const Findings findings = asked(kKind, story.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1, 3}));
}

TEST(EndedByMpi, OfCallsThatFailTheFirstIsLikelyTheCause) {
  JobBuilder story = job().ranks(4).exited(kAll, 5).ended();
  ended_at(story, 1, "MPI_Recv", 2.0, 30);
  ended_at(story, 2, "MPI_Send", 1.0);
  ended_at(story, 0, "MPI_Recv", 3.0, 30);
  ended_at(story, 3, "MPI_Recv", 4.0, 30);
  const Findings findings = asked(kKind, story.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{2});
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
}

TEST(EndedByMpi, CallsThatFailBecauseARankIsDeadAreNoCause) {
  JobBuilder story = job().ranks(2).killed(0, 9).ended();
  EXPECT_TRUE(asked(kKind, ended_at(story, 1, "MPI_Recv").build()).empty());
}

TEST(EndedByMpi, WhoWaitedInVainBeforeItAbortedIsNotTheCause) {
  JobBuilder story = job().ranks(3).ended();
  story.all_reduce(kAll, 1, 8, "main@/srv/job.c:12").complete_history();
  story.all_reduce({0, 1}, 2, 8, "main@/srv/job.c:12");
  const model::JobModel model = ended_at(story, 0, "MPI_Abort").build();
  EXPECT_TRUE(asked(kKind, model).empty());
  const Findings findings = asked("missing-rank", model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{2});
  EXPECT_EQ(findings[0].waiting, model::RankSet({0, 1}));
}

std::vector<MpiEnd> told(const std::string& log) {
  return mpi_ends_told(job().ranks(4).log({}, log).build());
}

TEST(EndedByMpi, ACallInWhichRanksDisagreeFailsBecauseOfThat) {
  JobBuilder story = job().ranks(3).log(
      0,
      "Traceback (most recent call last):\n  File \"/srv/job.py\", line 14, in reduce\n    "
      "world.Allreduce(a, b)\n  File \"src/mpi4py/MPI.src/Comm.pyx\", line 1115, in "
      "mpi4py.MPI.Comm.Allreduce\nmpi4py.MPI.Exception: MPI_ERR_TRUNCATE: message truncated\n");
  const Findings before = asked(kKind, story.exited(0, 1).build());
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(before[0].locations.at(0).line, 14);
  story.all_reduce({0, 1}, 1, 64).all_reduce(2, 1, 256);
  EXPECT_TRUE(asked(kKind, story.build()).empty());
}

TEST(MpiWords, TellWhoCalledMpiAbort) {
  const auto mpich = told(
      "Abort(5) on node 3 (rank 3 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 5) - "
      "process 3\n");
  ASSERT_EQ(mpich.size(), 1U);
  EXPECT_EQ(mpich[0].rank, 3);
  EXPECT_EQ(mpich[0].call, "MPI_Abort");
  EXPECT_EQ(mpich[0].code, 5);
  const auto open_mpi =
      told("MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\nwith errorcode 5.\n");
  ASSERT_EQ(open_mpi.size(), 1U);
  EXPECT_EQ(open_mpi[0].rank, 1);
  EXPECT_EQ(open_mpi[0].call, "MPI_Abort");
}

TEST(MpiWords, TellWhoseCallFailed) {
  for (const std::string function : {"internal_Send", "PMPI_Send"}) {
    const auto mpich = told("Abort(604654086) on node 2 (rank 2 in comm 0): Fatal error in " +
                            function + ": Invalid rank, error stack:\n");
    ASSERT_EQ(mpich.size(), 1U);
    EXPECT_EQ(mpich[0].rank, 2);
    EXPECT_EQ(mpich[0].call, "MPI_Send");
  }
  const auto open_mpi = told(
      "[host:195] *** An error occurred in MPI_Recv\n[host:195] *** reported by process "
      "[545325057,2]\n");
  ASSERT_EQ(open_mpi.size(), 1U);
  EXPECT_EQ(open_mpi[0].rank, 2);
  EXPECT_EQ(open_mpi[0].call, "MPI_Recv");
}

TEST(MpiWords, SayNothingOfRanksThatAreNoneOfTheWorld) {
  EXPECT_TRUE(
      told("Abort(5) on node 3 (rank 3 in comm 544): application called MPI_Abort(…)\n").empty());
  EXPECT_TRUE(
      told("MPI_ABORT was invoked on rank 1 in communicator MPI COMMUNICATOR 3 SPLIT\n").empty());
  EXPECT_TRUE(told("Abort(5) on node 3 (rank -7 in comm 0): Fatal error in PMPI_Send\n").empty());
  EXPECT_TRUE(told("Abort(99999999999999999999) on node 3 (rank 3 in comm 0): Fatal\n").empty());
  EXPECT_TRUE(told("*** reported by process [1,2]\n").empty());
}

TEST(MpiWords, NameTheLineOfTheCallThatWasUnderWay) {
  JobBuilder story = job().ranks(2).ended().log(
      {}, "Abort(6) on node 1 (rank 1 in comm 0): Fatal error in internal_Bcast: Invalid root\n");
  story.call(1, {.operation = "broadcast", .site = "main@/srv/job.c:31"});
  const Findings findings = asked(kKind, story.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{1});
  EXPECT_EQ(findings[0].locations.at(0).line, 31);
}

}  // namespace
}  // namespace ddpdoctor::detectors
