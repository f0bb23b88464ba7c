// SPDX-License-Identifier: Apache-2.0
// Ranks that continue after a call with a root, methods of mpi4py, communicators of one split, and
// MPI_Finalize.
#include "collector/detectors/partings/mpi_partings.h"

#include "collector/detectors/paths/mpi_source.h"
#include "collector/model/questions.h"
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

std::string in_mpi(const std::string& function, int line) {
  return "native:PMPI_" + function + "@libmpi.so.40 | native:MPI_" + function +
         "@libddpdoctor_agent.so | py:work@/srv/work.py:" + std::to_string(line);
}

// Line 4 reduces under `condition`, line 5 is a barrier of all ranks.
JobBuilder reducing(const std::string& condition) {
  return job().ranks(4).source("/srv/work.py",
                               "from mpi4py import MPI\ndef work(rank):\n    " + condition +
                                   "\n        world.Reduce(a, b)\n    world.Barrier()\n");
}

TEST(RootedCalls, NobodyWhoMayHaveGoneOnIsAccused) {
  const Findings findings = asked("mismatched-op", reducing("with timer():")
                                                       .stack(kAll, in_mpi("Barrier", 5))
                                                       .stack(0, in_mpi("Reduce", 4))
                                                       .build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_EQ(findings[0].waiting, model::all_ranks(reducing("").build()));
  EXPECT_NE(findings[0].summary.find("which of them skipped a call is unknown"), std::string::npos);
}

TEST(RootedCalls, AMiddleRankOfTheTreeThatATestSendsAwayIsNamed) {
  const Findings findings = asked(
      "mismatched-op",
      job()
          .ranks(4)
          .source("/srv/work.py",
                  "def work(rank, step):\n    if step == 9 and rank == 2:\n        return\n    "
                  "world.Bcast(a)\n    world.Barrier()\n\nwork(world.Get_rank(), 0)\n")
          .stack(kAll, in_mpi("Barrier", 5))
          .stack(3, in_mpi("Bcast", 4))
          .build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{2});
  EXPECT_EQ(findings[0].waiting, model::RankSet({0, 1, 3}));
}

// Line 2 reduces in the half under `condition`, line 3 is a barrier of all ranks.
JobBuilder in_halves(const std::string& condition) {
  return job()
      .ranks(4)
      .source("/srv/work.py", "def work(rank, step):\n    " + condition +
                                  "half.Allreduce(a, b)\n    world.Barrier()\n\n"
                                  "work(world.Get_rank(), 0)\n")
      .stack(kAll, in_mpi("Barrier", 3))
      .stack(3, in_mpi("Allreduce", 2));
}

TEST(Communicators, WhoWaitsAloneInAnotherOneIsNotAccused) {
  for (const std::string condition : {"", "if step < limit: "}) {
    const Findings findings = asked("mismatched-op", in_halves(condition).build());
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_TRUE(findings[0].culprits.empty());
    EXPECT_NE(findings[0].summary.find("which of them skipped a call is unknown"),
              std::string::npos);
  }
}

TEST(Communicators, ATestSaysWhoLeftTheCallOut) {
  for (const std::string condition : {"if rank != 1: ", "if not (rank == 1 and step == 9): "}) {
    const model::JobModel model = in_halves(condition).build();
    Findings findings = asked("mismatched-op", model);
    for (Finding& finding : asked("rank-conditional-collective", model)) {
      findings.push_back(std::move(finding));
    }
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].culprits, model::RankSet{1});
  }
}

TEST(Communicators, ATestSaysWhoIsAloneInIt) {
  const model::JobModel model = in_halves("if rank == 3: ").build();
  Findings findings = asked("mismatched-op", model);
  for (const std::string_view kind : {"rank-conditional-collective", "extra-rank-in-collective"}) {
    for (Finding& finding : asked(kind, model)) {
      findings.push_back(std::move(finding));
    }
  }
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{3});
}

TEST(Communicators, AreReadFromOneLineOfCOrPython) {
  const auto at = [](const std::string& line) {
    return communicator_at(job().ranks(2).source("/srv/a", line + "\n").build(),
                           {.file = "/srv/a", .line = 1, .function = "f"});
  };
  EXPECT_EQ(at("  MPI_Allreduce(&a, f(1, 2), 1, MPI_INT, MPI_SUM, grid->row);"), "grid->row");
  EXPECT_EQ(at("if (MPI_Barrier(MPI_COMM_WORLD) != 0) {"), "MPI_COMM_WORLD");
  EXPECT_EQ(at("total = self.row.allreduce(len(a))"), "self.row");
  EXPECT_EQ(at("MPI_Allreduce(&a, &b,"), "");
  EXPECT_EQ(at("MPI_Wait(&request, MPI_STATUS_IGNORE);"), "");
  EXPECT_EQ(at("functools.reduce(add, all)"), "functools");
}

TEST(RootedCalls, FewWhoWaitForTheRootWhereMostAreElsewhereAreAlone) {
  const Findings findings = asked(
      "mismatched-op",
      job().ranks(4).stack(kAll, in_mpi("Allreduce", 5)).stack(2, in_mpi("Bcast", 4)).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{2});
}

TEST(RootedCalls, TheOnlyOneElsewhereLeftItOut) {
  const Findings findings = asked("mismatched-op", reducing("with timer():")
                                                       .stack(kAll, in_mpi("Reduce", 4))
                                                       .stack(3, in_mpi("Barrier", 5))
                                                       .build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{3});
}

TEST(RootedCalls, ATestAgainstOneRankNamesIt) {
  const auto findings = asked("rank-conditional-collective", reducing("if rank != 2:")
                                                                 .stack(kAll, in_mpi("Barrier", 5))
                                                                 .stack(0, in_mpi("Reduce", 4))
                                                                 .build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{2});
}

TEST(RootedCalls, ATestForOneRankNamesTheOneThatCallsAlone) {
  const auto findings = asked("rank-conditional-collective", reducing("if rank == 3:")
                                                                 .stack(kAll, in_mpi("Barrier", 5))
                                                                 .stack(3, in_mpi("Reduce", 4))
                                                                 .build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{3});
}

TEST(RootedCalls, TwoArmsOfABranchAreNoWayOn) {
  const auto told = job()
                        .ranks(4)
                        .source("/srv/work.py",
                                "def work(big):\n    if big:\n        world.Reduce(a, b)\n"
                                "    else:\n        world.Allreduce(a, b)\n")
                        .stack(kAll, in_mpi("Allreduce", 5))
                        .stack(1, in_mpi("Reduce", 3))
                        .build();
  const Findings findings = asked("mismatched-op", told);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{1});
}

constexpr const char* kMethod =
    "native:MPI_Recv | native:__pyx_f_6mpi4py_3MPI_PyMPI_reduce_intra | "
    "native:__pyx_pw_6mpi4py_3MPI_4Comm_293allreduce | py:step@/srv/work.py:9";

TEST(MethodsOfMpi4py, WhoReceivesInsideTheCallOfTheOthersIsNotTheOneWhoLacks) {
  const std::string id = "MPI_COMM_WORLD.1:0";
  const model::JobModel told =
      job()
          .ranks(4)
          .backend("mpi")
          .group(id, {0, 1, 2, 3})
          .call(kAll, {.operation = "broadcast", .sequence = 1, .group = id})
          .call(
              {2, 3},
              {.operation = "broadcast", .sequence = 2, .group = id, .site = "step@/srv/work.py:9"})
          .stack({2, 3},
                 "native:MPI_Bcast | native:__pyx_pw_6mpi4py_3MPI_4Comm_293allreduce | "
                 "py:step@/srv/work.py:9")
          .call(0, {.operation = "recv",
                    .sequence = 1,
                    .group = id,
                    .peer = 1,
                    .state = model::CallState::kStarted})
          .stack(0, kMethod)
          .stack(1, in_mpi("Recv", 3))
          .build();
  const Findings findings = asked("missing-rank", told);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{1}) << findings[0].summary;
}

// Halves {0, 1} and {2, 3}, five calls in each; then all ranks make one all_reduce, except those in
// `with_a_sixth`, which are in a sixth call of their half.
JobBuilder split(const std::vector<model::Rank>& with_a_sixth) {
  JobBuilder told = job().ranks(4).backend("mpi");
  for (const model::Rank first : {0, 2}) {
    const std::string id = "MPI_COMM_WORLD.1:" + std::to_string(first);
    told.group(id, {first, first + 1});
    for (std::int64_t sequence = 1; sequence <= 5; ++sequence) {
      told.call({first, first + 1}, {.operation = "all_reduce", .sequence = sequence, .group = id});
    }
  }
  for (const model::Rank rank : with_a_sixth) {
    told.call(rank, {.operation = "barrier",
                     .sequence = 6,
                     .group = "MPI_COMM_WORLD.1:" + std::to_string(rank / 2 * 2),
                     .site = "halves@/srv/work.c:7"});
  }
  return told;
}

TEST(Splits, OneCallTooManyInAHalfIsTheOneOfTheRankThatDiffersFromMost) {
  const model::JobModel told = split({3})
                                   .all_reduce({0, 1, 2}, 1)
                                   .stack({0, 1, 2}, in_mpi("Allreduce", 8))
                                   .stack(3, in_mpi("Barrier", 7))
                                   .build();
  const Findings findings = asked("extra-rank-in-collective", told);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{3});
  EXPECT_TRUE(asked("collective-order", told).empty());
}

TEST(Splits, WhoLeftACallOfItsHalfOutIsMissingThere) {
  const model::JobModel told = split({0, 2, 3})
                                   .all_reduce({1, 2, 3}, 1)
                                   .stack({1, 2, 3}, in_mpi("Allreduce", 8))
                                   .stack(0, in_mpi("Barrier", 7))
                                   .build();
  const Findings findings = asked("missing-rank", told);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{1});
}

TEST(Splits, WhoHasMadeNoCallInItsHalfIsCountedToo) {
  JobBuilder told = job().ranks(4).backend("mpi");
  for (const model::Rank first : {0, 2}) {
    told.group("MPI_COMM_WORLD.1:" + std::to_string(first), {first, first + 1});
  }
  for (const model::Rank rank : {0, 2, 3}) {
    told.call(rank, {.operation = "barrier",
                     .sequence = 1,
                     .group = "MPI_COMM_WORLD.1:" + std::to_string(rank / 2 * 2),
                     .site = "halves@/srv/work.c:7"});
  }
  told.all_reduce({1, 2, 3}, 1).stack({1, 2, 3}, in_mpi("Allreduce", 8));
  const model::JobModel model = told.stack(0, in_mpi("Barrier", 7)).build();
  const Findings findings = asked("missing-rank", model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{1});
  EXPECT_TRUE(asked("collective-order", model).empty());
}

TEST(Finalize, WhoEndsMpiWhileOthersWaitForItHasLeft) {
  const auto told = [](const char* elsewhere, int line) {
    return job()
        .ranks(3)
        .stack({0, 1}, in_mpi("Allreduce", 8))
        .stack(2, in_mpi(elsewhere, line))
        .build();
  };
  const Findings findings = asked("rank-exited", told("Finalize", 20));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{2});
  EXPECT_EQ(findings[0].locations.front().line, 20);
  EXPECT_TRUE(asked("missing-rank", told("Finalize", 20)).empty());
  EXPECT_TRUE(asked("rank-exited", told("Recv", 20)).empty());
  EXPECT_EQ(asked("missing-rank", told("Recv", 20)).size(), 1U);
}

TEST(Finalize, IsNoFaultWhileTheOthersOnlyWork) {
  const model::JobModel told = job()
                                   .ranks(3)
                                   .stack({0, 1}, in_mpi("Finalize", 20))
                                   .stack(2, "py:relax@/srv/work.py:3")
                                   .computing(2)
                                   .build();
  EXPECT_TRUE(asked("rank-exited", told).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
