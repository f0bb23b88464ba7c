// SPDX-License-Identifier: Apache-2.0
// A worker that returned early from the handling of an item and waits for the next.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr const char* kWorker = R"(
def run(tokens):
    free = int(open(path).read())
    if tokens > free:
        return
    dist.all_reduce(part)

def loop():
    while True:
        run(inbox.get())
)";

const std::string kGets =
    "native:read@libc.so.6 | "
    "py:Connection._recv@/usr/lib/python3.11/multiprocessing/connection.py:395 | "
    "py:Queue.get@/usr/lib/python3.11/multiprocessing/queues.py:103 | ";

JobBuilder told(const std::string& worker, const std::string& waits) {
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, worker).history(kAll, 1, 8);
  builder.stack(0, in("all_reduce", at("run", "all_reduce") + " | " + at("loop", "run(inbox")))
      .call(0, {.operation = "all_reduce", .sequence = 9, .state = model::CallState::kStarted});
  builder.stack(1, kGets + waits);
  return builder;
}

TEST(NextItem, NamesTheEarlyReturnOfTheRankThatWaitsAtTheHeadOfTheLoop) {
  const model::JobModel model = told(kWorker, at("loop", "run(inbox")).build();
  const Findings findings = asked("divergent-branch", model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{1});
  EXPECT_NE(findings[0].confidence, Confidence::kCertain);  // or it was not given this item
  EXPECT_NE(findings[0].summary.find("tokens > free"), std::string::npos) << findings[0].summary;
  EXPECT_TRUE(asked("missing-rank", model).empty());
}

TEST(NextItem, IsNotGuessedWhereNoConditionSeparatesTheRanks) {
  constexpr const char* kPlain = R"(
def run(tokens):
    dist.all_reduce(part)

def loop():
    while True:
        run(inbox.get())
)";
  const model::JobModel model = told(kPlain, at("loop", "run(inbox")).build();
  EXPECT_TRUE(asked("divergent-branch", model).empty());
  EXPECT_EQ(asked("missing-rank", model).size(), 1U);
}

TEST(NextItem, IsNotSeenInAnotherLoop) {
  constexpr const char* kIdle = R"(
def run(tokens):
    if tokens > int(open(path).read()):
        return
    dist.all_reduce(part)

def loop():
    while True:
        run(inbox.get())

def idle():
    while True:
        inbox.get()
)";
  const model::JobModel model = told(kIdle, at("idle", "inbox.get()")).build();
  EXPECT_TRUE(asked("divergent-branch", model).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
