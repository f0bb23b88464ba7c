// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collector/detectors/evidence/signal_exceptions.h"
#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

const std::string kHandler = R"(
stop = False

def note(number, frame):
    global stop
    stop = True

signal.signal(signal.SIGTERM, note)
)";

const std::string kLoop = R"(
def main():
    for step in range(100):
        dist.all_reduce(grads)
        if stop:
            break
    dist.barrier()
)";

JobBuilder told(const std::string& source) {
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, "import signal\n" + source)
      .stack({0, 1}, in("all_reduce", at("main", "all_reduce")))
      .stack(2, in("barrier", at("main", "barrier")));
  return builder;
}

TEST(UncoordinatedStop, NamesTheRankThatLeftTheLoopOnASignal) {
  const Findings findings = asked("uncoordinated-stop", told(kHandler + kLoop).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_NE(findings[0].summary.find("SIGTERM"), std::string::npos) << findings[0].summary;
  EXPECT_EQ(std::get<std::string>(findings[0].details.at("signal")), "SIGTERM");
  EXPECT_NE(findings[0].confidence, Confidence::kPossible);
}

TEST(UncoordinatedStop, TellsWhoActedByTheFlagNotByTheLineItGuards) {
  const auto summary = [](const std::string& tests) {
    const std::string loop =
        "\ndef main():\n    for step in range(100):\n" + tests + "    dist.barrier()\n";
    return asked("uncoordinated-stop", told(kHandler + loop).build()).at(0).summary;
  };
  const auto first =
      summary("        if stop:\n            break\n        dist.all_reduce(grads)\n");
  const auto negated = summary(
      "        if not stop:\n            dist.all_reduce(grads)\n        else:\n            "
      "break\n");
  EXPECT_TRUE(first.starts_with("rank 2 acted on SIGTERM")) << first;
  EXPECT_NE(first.find("ranks 0 and 1 did not, and are in all_reduce"), std::string::npos) << first;
  EXPECT_TRUE(negated.starts_with("rank 2 acted on SIGTERM")) << negated;
}

TEST(UncoordinatedStop, LeavesAFlagThatNoSignalSetsToDivergentBranch) {
  const std::string plain = "\nstop = load()\n";
  EXPECT_TRUE(asked("uncoordinated-stop", told(plain + kLoop).build()).empty());
  const std::string by_loss = R"(
def main():
    stop = False
    for step in range(100):
        dist.all_reduce(grads)
        stop = loss.item() < 1
        if stop:
            break
    dist.barrier()
)";
  EXPECT_TRUE(asked("uncoordinated-stop", told(by_loss).build()).empty());
  EXPECT_EQ(asked("divergent-branch", told(by_loss).build()).size(), 1U);
}

TEST(UncoordinatedStop, SaysHowFarEachRankHadCome) {
  JobBuilder builder = told(kHandler + kLoop);
  builder.history({0, 1}, 1, 12, "all_reduce", site("main", "all_reduce"))
      .history(2, 1, 11, "all_reduce", site("main", "all_reduce"))
      .barrier(2, 12, site("main", "barrier"));
  const Findings findings = asked("uncoordinated-stop", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(std::any_of(
      findings[0].evidence.begin(), findings[0].evidence.end(),
      [](const Evidence& one) { return one.text.find("12 calls of") != std::string::npos; }));
}

TEST(UncoordinatedStop, QuotesTheScheduler) {
  JobBuilder builder = told(kHandler + kLoop);
  builder.log({}, "slurmstepd: error: *** JOB 77 ON n1 CANCELLED DUE TO PREEMPTION ***\n");
  const Findings findings = asked("uncoordinated-stop", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(std::any_of(
      findings[0].evidence.begin(), findings[0].evidence.end(),
      [](const Evidence& one) { return one.text.find("PREEMPTION") != std::string::npos; }));
}

TEST(UncoordinatedStop, SeesACollectiveInsideTheHandler) {
  JobBuilder builder = job();
  builder.ranks(2)
      .source(kTrain, R"(
import signal

def save(number, frame):
    dist.barrier()

signal.signal(signal.SIGUSR1, save)

def main():
    while True:
        dist.all_reduce(grads)
        work()
)")
      .stack(0, in("all_reduce", at("main", "all_reduce")))
      .stack(1, in("barrier", at("save", "barrier") + " | " + at("main", "work")));
  const Findings findings = asked("uncoordinated-stop", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].waiting, (model::RankSet{0}));
  builder.stack(0, in("barrier", at("save", "barrier") + " | " + at("main", "work")));
  EXPECT_TRUE(asked("uncoordinated-stop", builder.build()).empty()) << "all are in it";
}

TEST(UncoordinatedStop, IsSilentOnTheHealthyTwin) {
  EXPECT_TRUE(nothing_likely(asked("uncoordinated-stop", moving(told(kHandler + kLoop).build()))));
  const std::string agreed = R"(
def main():
    for step in range(100):
        dist.all_reduce(grads)
        flag = torch.tensor(stop)
        dist.all_reduce(flag)
        if flag.item():
            break
    dist.barrier()
)";
  EXPECT_TRUE(asked("uncoordinated-stop", told(kHandler + agreed).build()).empty());
}

TEST(UncoordinatedStop, IsOnlyPossibleWhenARankIsUnobserved) {
  JobBuilder builder = told(kHandler + kLoop);
  builder.unobserved(1);
  EXPECT_TRUE(nothing_likely(asked("uncoordinated-stop", builder.build())));
}

TEST(UncoordinatedStop, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("uncoordinated-stop", told(kHandler + kLoop).build())),
            essence(asked("uncoordinated-stop", reversed(told(kHandler + kLoop).build()))));
}

constexpr const char* kRaisedForASignal = R"(Traceback (most recent call last):
  File "/srv/train.py", line 9, in main
    trainer.fit(model)
  File "/opt/site-packages/lightning/pytorch/loops/training_epoch_loop.py", line 403, in on_advance_end
    raise SIGTERMException
lightning.pytorch.utilities.exceptions.SIGTERMException
)";

TEST(UncoordinatedStop, NamesTheRankThatALibraryEndedForASignal) {
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, kLoop);
  builder.stack({0, 1}, in("all_reduce", at("main", "all_reduce")));
  builder.exited(2, 1).log(2, kRaisedForASignal);
  const model::JobModel stopped = builder.build();
  const Findings findings = asked("uncoordinated-stop", stopped);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
  EXPECT_NE(findings[0].summary.find("stopped for SIGTERM"), std::string::npos);
  EXPECT_TRUE(asked("rank-raised", stopped).empty());
}

TEST(UncoordinatedStop, IsNoneIfNoRankWaits) {
  JobBuilder builder = job();
  builder.ranks(1).exited(0, 1).log(0, kRaisedForASignal).ended();
  EXPECT_TRUE(asked("uncoordinated-stop", builder.build()).empty());
  EXPECT_EQ(asked("rank-raised", builder.build()).size(), 1U);
}

TEST(SignalOfException, IsReadFromItsClass) {
  EXPECT_EQ(signal_of_exception("lightning.pytorch.utilities.exceptions.SIGTERMException"),
            "SIGTERM");
  EXPECT_EQ(signal_of_exception("SIGUSR1: told to stop"), "SIGUSR1");
  EXPECT_EQ(signal_of_exception("jobs.SIGINTError: now"), "SIGINT");
  EXPECT_EQ(signal_of_exception("SIGMOIDError: x"), "");
  EXPECT_EQ(signal_of_exception("RuntimeError: SIGTERM"), "");
}

}  // namespace
}  // namespace ddpdoctor::detectors
