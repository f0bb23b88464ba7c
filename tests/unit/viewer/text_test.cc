// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collector/model/observed_values.h"
#include "tests/unit/viewer/story.h"
#include "viewer/formats/text_parts.h"
#include "viewer/render.h"

namespace ddpdoctor::viewer {
namespace {

using diagnosis::Verdict;
using tests::conditional_barrier;
using tests::diagnosis_of;
using tests::hung_job;
using tests::kAll;

TEST(Text, SaysAHangLikeACompilerError) {
  const model::JobModel job = hung_job();
  EXPECT_EQ(
      text(diagnosis_of(job, {conditional_barrier()}), {}),
      R"(error: rank 2 never joined all_reduce #1043                   [rank-conditional-collective, certain]
  train.py:61  dist.barrier()    rank 2 is here, in evaluate
  train.py:88  loss.backward()   ranks 0-1,3 have waited here for 4 min 12 s
  train.py:57  if rank == 2:     the branch that separates them
  why: rank 2: has enqueued 1042 collectives in default_pg, the others 1043
  fix: call evaluate() on every rank, or leave the barrier out of it.
       More: ddpdoctor explain rank-conditional-collective

stacks of 4 ranks (5 processes, 5 threads; no thread was paused), by rank
  main train.py:104 · fit train.py:97            0-3
  ├ evaluate train.py:61 · barrier …             2
  └ train_step train.py:88 · Tensor.backward …   0-1,3
)");
}

/// The value of `rank == 2` on a rank.
model::Fact tested(model::Rank rank, const char* value) {
  return model::fact_of({.rank = rank,
                         .role = model::ValueRole::kDecision,
                         .file = tests::kScript,
                         .line = 57,
                         .function = "fit",
                         .at = 97,
                         .expression = "rank == 2",
                         .value = value,
                         .state = model::ValueState::kKnown,
                         .reason = {}});
}

TEST(Text, ShowsTheValuesOfATestUnlessAllRanksHaveOne) {
  const auto with = [](const char* on_rank_2) {
    model::JobModel job = hung_job();
    for (const model::Rank rank : {0, 1, 2, 3}) {
      job.facts.push_back(tested(rank, rank == 2 ? on_rank_2 : "False"));
    }
    return text(diagnosis_of(job, {conditional_barrier()}), {});
  };
  EXPECT_NE(with("True").find("True on rank 2, False on ranks"), std::string::npos) << with("True");
  EXPECT_EQ(with("False").find("False on"), std::string::npos) << with("False");
}

TEST(Text, ShowsAnOutcomeInPlaceOfAValueThatWasNotRead) {
  model::JobModel job = hung_job();
  job.facts.push_back(tested(2, "True"));
  detectors::Finding finding = conditional_barrier();
  finding.locations.back().outcomes = {{.ranks = {0, 1, 3},
                                        .expression = "rank == 2",
                                        .value = "False",
                                        .reason = "skipped line 61"}};
  const std::string shown = text(diagnosis_of(job, {finding}), {});
  EXPECT_NE(shown.find("True on rank 2, False on ranks"), std::string::npos) << shown;
  EXPECT_NE(shown.find("(skipped"), std::string::npos) << shown;
}

TEST(Text, TellsWhatWasNotSeenBeforeTheVerdict) {
  model::JobModel job = hung_job();
  job.coverage.unobserved = {"rank 3 (pid 1300): permission denied"};
  job.coverage.warnings = {"two looks were cut short"};
  const std::string said = text(diagnosis_of(job, {conditional_barrier()}), {});
  EXPECT_TRUE(
      said.starts_with("not observed: rank 3 (pid 1300): permission denied\n"
                       "note: two looks were cut short\n\nerror: "))
      << said;
}

TEST(Text, PossibleFindingsAndHealthyVerdictsAreWarnings) {
  const model::JobModel job = hung_job();
  detectors::Finding finding = conditional_barrier();
  finding.confidence = detectors::Confidence::kPossible;
  EXPECT_TRUE(text(diagnosis_of(job, {finding}), {}).starts_with("warning: rank 2"));
  finding.confidence = detectors::Confidence::kLikely;
  EXPECT_TRUE(text(diagnosis_of(job, {finding}), {}).starts_with("error: rank 2"));
  EXPECT_TRUE(
      text(diagnosis_of(job, {finding}, Verdict::kSlow), {}).starts_with("warning: rank 2"));
}

TEST(Text, ShowsThreeFindingsUnlessAskedForAll) {
  const model::JobModel job = hung_job();
  const detectors::Findings five(5, conditional_barrier());
  const std::string three = text(diagnosis_of(job, five), {});
  EXPECT_NE(three.find("\n2 more findings: --all\n"), std::string::npos) << three;
  const std::string all = text(diagnosis_of(job, five), {.all_findings = true});
  EXPECT_EQ(all.find("more findings"), std::string::npos) << all;
}

TEST(Text, LongSummariesWrapAndKeepTheTagAtTheEdge) {
  const model::JobModel job = hung_job();
  detectors::Finding finding = conditional_barrier();
  finding.summary =
      "rank 2 is in barrier #7 of default_pg and the ranks 0-1,3 are in all_reduce #7 of the same "
      "group";
  finding.locations.clear();
  finding.evidence.clear();
  EXPECT_EQ(finding_block(diagnosis_of(job, {finding}), finding, FileNames({}), {.width = 80}),
            R"(error: rank 2 is in barrier #7 of default_pg and the ranks 0-1,3 are in
       all_reduce #7 of the same group    [rank-conditional-collective, certain]
  fix: call evaluate() on every rank, or leave the barrier out of it.
       More: ddpdoctor explain rank-conditional-collective
)");
}

TEST(Text, APlaceWithoutSourceNamesItsFunctionAndItsRanks) {
  const model::JobModel job = hung_job();
  detectors::Finding finding = conditional_barrier();
  finding.locations = {{.rank = {},
                        .ranks = {0, 1},
                        .file = "/srv/model.py",
                        .line = 7,
                        .function = "forward",
                        .note = {}}};
  finding.evidence.clear();
  const std::string said = finding_block(diagnosis_of(job, {finding}), finding, FileNames({}), {});
  EXPECT_NE(said.find("\n  model.py:7  in forward   ranks 0 and 1 are here\n"), std::string::npos)
      << said;
}

TEST(Text, LongNotesHangUnderTheirColumn) {
  const model::JobModel job = hung_job();
  detectors::Finding finding = conditional_barrier();
  finding.locations.resize(1);
  finding.locations.front().note =
      "rank 2 is here, in evaluate, which the other ranks did not enter because rank is not 2 "
      "there";
  finding.evidence.clear();
  const std::string said =
      finding_block(diagnosis_of(job, {finding}), finding, FileNames({}), {.width = 80});
  EXPECT_NE(
      said.find(
          "  train.py:61  dist.barrier()   rank 2 is here, in evaluate, which the other\n"
          "                                ranks did not enter because rank is not 2 there\n"),
      std::string::npos)
      << said;
}

TEST(Text, EscapesWhatAProcessNamedItself) {
  model::JobModel job = hung_job();
  job.sources["/srv/train.py"][61] = "evil()  # \x1b[2J\x07";
  const std::string said = text(diagnosis_of(job, {conditional_barrier()}), {});
  EXPECT_EQ(said.find('\x1b'), std::string::npos);
  EXPECT_NE(said.find("evil()  # \\x1b[2J\\x07"), std::string::npos) << said;
}

TEST(Text, ColoursOnlyWhenAsked) {
  const model::JobModel job = hung_job();
  EXPECT_EQ(text(diagnosis_of(job, {conditional_barrier()}), {}).find('\x1b'), std::string::npos);
  EXPECT_NE(text(diagnosis_of(job, {conditional_barrier()}), {.colour = true})
                .find("\x1b[1;31merror: \x1b[0m"),
            std::string::npos);
}

TEST(Text, OneLineSaysThatNothingIsWrong) {
  const model::JobModel job = hung_job();
  EXPECT_TRUE(text(diagnosis_of(job, {}, Verdict::kRunning), {})
                  .starts_with("running: 4 ranks are making progress\n\nstacks of"));
  EXPECT_TRUE(text(diagnosis_of(job, {}, Verdict::kFinished), {})
                  .starts_with("finished: the job of 4 ranks has exited; no problem found\n"));
  EXPECT_TRUE(text(diagnosis_of(job, {}), {})
                  .starts_with(
                      "hang: no progress for 4 min 12 s in 4 ranks, but no known cause matches\n"));
}

TEST(Text, CallsItNoStandstillWhileARankIsAtWork) {
  const auto told = [](char state) {
    const model::JobModel job = tests::job()
                                    .ranks(2)
                                    .python(0, "/srv/t.py", 5, "build")
                                    .state(0, state)
                                    .python(1, "/srv/t.py", 9, "main")
                                    .progress(model::Progress::kStill)
                                    .build();
    diagnosis::Diagnosis diagnosis = diagnosis_of(job, {}, Verdict::kUndetermined);
    diagnosis.examination.standings = graph::standings(job);
    return text(diagnosis, {});
  };
  EXPECT_TRUE(told('R').starts_with(
      "undetermined: rank 0 is at work (t.py:5, build), and no known cause matches\n"))
      << told('R');
  EXPECT_EQ(told('S').find("at work"), std::string::npos);
}

TEST(Text, SaysWhoWasPaused) {
  model::JobModel job = hung_job();
  job.observations.back().processes.back().threads.front().capture = "stopped 0.41 ms";
  EXPECT_NE(text(diagnosis_of(job, {}), {}).find("5 threads; one thread paused, for 0.41 ms)"),
            std::string::npos);
  for (model::Process& process : job.observations.back().processes) {
    process.threads.front().capture = "from py-spy";  // another tool may have paused it
  }
  EXPECT_NE(text(diagnosis_of(job, {}), {}).find("5 threads), by rank"), std::string::npos);
}

}  // namespace
}  // namespace ddpdoctor::viewer
