// SPDX-License-Identifier: Apache-2.0
// One line calls a different function on some ranks: the line that chose the function is the cause,
// whatever its names are.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "collector/model/observed_values.h"
#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

using model::SeenValue;
using model::ValueRole;
using model::ValueState;

std::string with_names(std::string text, const std::string& object, const std::string& method) {
  for (const auto& [from, to] : {std::pair{std::string("OBJECT"), object}, {"METHOD", method}}) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
      text.replace(at, from.size(), to);
    }
  }
  return text;
}

constexpr const char* kByRole = R"(
import torch.distributed as dist

class Plain:
    def METHOD(self, w):
        dist.all_reduce(w)

class Archivist:
    def METHOD(self, w):
        dist.all_gather(ws, w)

CLASSES = {"archive": Archivist, "plain": Plain}

def make(number):
    return CLASSES["archive" if number == 0 else "plain"]()

class Fleet:
    def __init__(self):
        self.OBJECT = make(dist.get_rank())

    def run(self):
        self.OBJECT.METHOD(self.w)
)";

model::JobModel by_role(const std::string& object, const std::string& method) {
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain, with_names(kByRole, object, method));
  const std::string run =
      " | " + at("Fleet.run", with_names("self.OBJECT.METHOD(self.w)", object, method));
  builder.stack(kAll, in("all_reduce", at("Plain." + method, "dist.all_reduce(w)") + run));
  builder.stack(0, in("all_gather", at("Archivist." + method, "dist.all_gather(ws, w)") + run));
  return builder.build();
}

TEST(Dispatch, ByTheRankIsTheCauseWhateverItsNames) {
  for (const std::string object : {"part", "x1"}) {
    for (const std::string method : {"advance", "f2"}) {
      const Findings found = asked("rank-conditional-collective", by_role(object, method));
      ASSERT_EQ(found.size(), 1U) << object << " " << method;
      EXPECT_EQ(found[0].culprits, model::RankSet{0});
      EXPECT_NE(found[0].summary.find("is Archivist." + method + " on rank 0 and Plain." + method +
                                      " on ranks 1-3, chosen by `number == 0` (train.py:14)"),
                std::string::npos)
          << found[0].summary;
      const auto call = std::find_if(found[0].locations.begin(), found[0].locations.end(),
                                     [](const Location& one) { return !one.outcomes.empty(); });
      ASSERT_NE(call, found[0].locations.end());
      EXPECT_EQ(call->outcomes[0].value, "Archivist." + method);
      EXPECT_EQ(call->outcomes[1].value, "Plain." + method);
      EXPECT_TRUE(asked("mismatched-op", by_role(object, method)).empty());
    }
  }
}

constexpr const char* kListeners = R"(
import torch.distributed as dist

class Counter:
    def after(self, n):
        self.n = n

class Keeper:
    def after(self, n):
        dist.barrier()

def listeners(cfg):
    found = [Counter()]
    if cfg.mode:
        found.append(Keeper())
    return found

class Loop:
    def __init__(self, cfg):
        self.all = listeners(cfg)

    def once(self, n):
        for one in self.all:
            one.after(n)
        dist.all_reduce(self.w)
)";

JobBuilder in_listener() {
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain, kListeners);
  builder.stack(kAll, in("all_reduce", at("Loop.once", "dist.all_reduce(self.w)")));
  builder.stack(0, in("barrier", at("Keeper.after", "dist.barrier()") + " | " +
                                     at("Loop.once", "one.after(n)")));
  return builder;
}

using Names = std::vector<std::string>;

model::JobModel with_callees(const Names& odd, const Names& rest, const std::string& shown = {}) {
  model::JobModel job = in_listener().build();
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<model::CallSite> each;
    std::string text;
    for (const std::string& name : rank == 0 ? odd : rest) {
      each.push_back({.file = kTrain, .line = 1, .function = name});
      text += (text.empty() ? "[" : ", ") + name;
    }
    job.facts.push_back(model::fact_of(SeenValue{.rank = rank,
                                                 .role = ValueRole::kCallee,
                                                 .file = kTrain,
                                                 .line = 23,
                                                 .function = "Loop.once",
                                                 .at = 24,
                                                 .expression = "one.after",
                                                 .value = shown.empty() ? text + "]" : shown,
                                                 .state = ValueState::kKnown,
                                                 .reason = {},
                                                 .each = each}));
  }
  return job;
}

TEST(Dispatch, InALoopOverCallbacksNamesThoseOfEachSide) {
  const Findings found =
      asked("divergent-branch", with_callees({"Counter.after", "Keeper.after"}, {"Counter.after"}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].culprits, model::RankSet{0});
  EXPECT_NE(found[0].summary.find("[Counter.after, Keeper.after] on rank 0 and [Counter.after] on "
                                  "ranks 1-3"),
            std::string::npos)
      << found[0].summary;
}

TEST(Dispatch, IsNotTheCauseIfOneSideCallsTheSameFunctionMoreOften) {
  const Findings found =
      asked("divergent-branch", with_callees({"Keeper.after", "Keeper.after"}, {"Keeper.after"}));
  EXPECT_TRUE(std::none_of(found.begin(), found.end(), [](const Finding& one) {
    return one.summary.find("one.after") != std::string::npos;
  }));
}

/// A long list is shown in part; the functions behind the part that is shown count, too.
TEST(Dispatch, ComparesAllFunctionsOfALoopAndNotTheirText) {
  const std::string shown = "[A.after, … 8 in all]";
  model::JobModel job = with_callees({"A.after", "Keeper.after"}, {"A.after", "B.after"}, shown);
  model::drop_idle_values(job.facts);
  const auto reached = model::callees_at(job, kTrain, 23, model::RankSet{0, 1, 2, 3});
  ASSERT_EQ(reached.size(), 1U);
  EXPECT_EQ(reached[0].functions.size(), 2U);
  EXPECT_FALSE(asked("divergent-branch", job).empty());
  const auto again = with_callees({"A.after", "A.after"}, {"A.after"}, shown);
  const Findings found = asked("divergent-branch", again);
  EXPECT_TRUE(std::none_of(found.begin(), found.end(), [](const Finding& one) {
    return one.summary.find("one.after") != std::string::npos;
  }));
}

constexpr const char* kTable = R"(
import torch.distributed as dist

def local(w):
    return w.mean()

def reduced(w):
    dist.all_gather(ws, w)

class Score:
    def __init__(self, how):
        self.how = {"local": local, "reduced": reduced}[how]

    def step(self):
        dist.all_reduce(self.w)
        self.how(self.w)
)";

/// No stack is in the function any more: the records and the memory show that the line called it.
model::JobModel ran_past_a_table(const model::CallSite& odd) {
  const model::CallSite local{.file = kTrain, .line = 4, .function = "local"};
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, kTable);
  builder.stack(kAll, in("all_reduce", at("Score.step", "dist.all_reduce(self.w)")));
  builder
      .call({0, 1}, {.operation = "all_reduce",
                     .sequence = 4,
                     .site = site("Score.step", "dist.all_reduce(self.w)")})
      .call(2, {.operation = "all_gather",
                .sequence = 4,
                .site = site("reduced", "dist.all_gather") + " | " +
                        site("Score.step", "self.how(self.w)")})
      .call(kAll, {.operation = "all_reduce",
                   .sequence = 5,
                   .site = site("Score.step", "dist.all_reduce(self.w)")});
  model::JobModel told = builder.build();
  for (int rank = 0; rank < 3; ++rank) {
    const model::CallSite& reached = rank == 2 ? odd : local;
    told.facts.push_back(model::fact_of(SeenValue{.rank = rank,
                                                  .role = ValueRole::kCallee,
                                                  .file = kTrain,
                                                  .line = 15,
                                                  .function = "Score.step",
                                                  .at = 14,
                                                  .expression = "self.how",
                                                  .value = reached.function + " (train.py)",
                                                  .state = ValueState::kKnown,
                                                  .reason = {},
                                                  .reached = reached}));
  }
  return told;
}

TEST(Dispatch, OfAHostThatRanOnIsReadFromItsMemory) {
  const Findings found = asked("divergent-branch", ran_past_a_table({kTrain, 7, "reduced"}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].culprits, model::RankSet{2});
  EXPECT_NE(found[0].summary.find("`self.how` (train.py:15) is reduced on rank 2 and local"),
            std::string::npos)
      << found[0].summary;
  EXPECT_TRUE(asked("divergent-branch", ran_past_a_table({kTrain, 7, "other"})).empty());
  // Memory may show the file under another path.
  EXPECT_EQ(
      asked("divergent-branch", ran_past_a_table({"/proc/cwd/train.py", 7, "reduced"})).size(), 1U);
}

TEST(Dispatch, ToOneFunctionOnAllRanksPartsNobody) {
  const Findings found =
      asked("divergent-branch", with_callees({"Keeper.after"}, {"Keeper.after"}));
  EXPECT_TRUE(std::none_of(found.begin(), found.end(), [](const Finding& one) {
    return one.summary.find("one.after") != std::string::npos;
  }));
}

constexpr const char* kStages = R"(
import torch.distributed as dist

class First:
    def run(self, w):
        dist.all_reduce(w)  # first

class Last:
    def run(self, w):
        loss = self.net(w).mean()
        if loss.isnan().any():
            dist.barrier()
        dist.all_reduce(w)  # last

def stage_of(number):
    return First() if number == 0 else Last()

def main():
    stage = stage_of(dist.get_rank())
    stage.run(w)
)";

TEST(Dispatch, IsNotTheCauseWhereBothSidesRunTheSameFunction) {
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain, kStages);
  const std::string main = " | " + at("main", "stage.run(w)");
  builder.stack(kAll, in("all_reduce", at("Last.run", "dist.all_reduce(w)  # last") + main));
  builder.stack(0, in("all_reduce", at("First.run", "dist.all_reduce(w)  # first") + main));
  builder.stack(2, in("barrier", at("Last.run", "dist.barrier()") + main));
  for (const std::string kind : {"divergent-branch", "rank-conditional-collective"}) {
    for (const Finding& found : asked(kind, builder.build())) {
      EXPECT_EQ(found.summary.find("stage.run"), std::string::npos) << found.summary;
    }
  }
}

TEST(Dispatch, ToClassesThatMakeTheSameCallsAccusesNobody) {
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, kStages);
  const std::string main = " | " + at("main", "stage.run(w)");
  builder.stack(0, in("all_reduce", at("First.run", "dist.all_reduce(w)  # first") + main));
  builder.stack(1, in("all_reduce", at("Last.run", "dist.all_reduce(w)  # last") + main));
  EXPECT_TRUE(asked("rank-conditional-collective", builder.build()).empty());
}

/// Every 20th step runs the function that a table gave; its call on rank 2 is recorded, and the
/// hosts have run on.
Findings by_environment(bool unlike) {
  JobBuilder builder = job();
  builder.ranks(3);
  builder.source(kTrain,
                 "import os\nimport torch.distributed as dist\n"
                 "def local(v):\n    return v\n"
                 "def reduced(v):\n    dist.all_reduce(v)\n"
                 "HOW = {'local': local, 'reduced': reduced}\n"
                 "class Score:\n    def __init__(self):\n"
                 "        self.how = HOW[os.environ.get('SCORE', 'local')]\n"
                 "    def step(self, count):\n        dist.broadcast(self.v, src=0)\n"
                 "        if count % 20 == 19:\n            self.how(self.v)\n"
                 "def main():\n    while True:\n        score.step(1)\n        time.sleep(1)\n");
  const std::string step =
      site("Score.step", "dist.broadcast") + " | " + site("main", "score.step");
  builder.stack(
      kAll, in("broadcast", at("Score.step", "dist.broadcast") + " | " + at("main", "score.step")));
  for (std::int64_t next = 1; next <= 20; ++next) {
    builder.call(kAll, {.operation = "broadcast", .sequence = next, .site = step});
  }
  builder.call({0, 1}, {.operation = "broadcast", .sequence = 21, .site = step});
  builder.call(
      2, {.operation = "all_reduce",
          .sequence = 21,
          .site = site("reduced", "dist.all_reduce") + " | " +
                  site("Score.step", "self.how(self.v)") + " | " + site("main", "score.step")});
  builder.call(kAll, {.operation = "broadcast", .sequence = 22, .site = step});
  if (unlike) {
    builder.fact("variable-unlike", {{"name", std::string("SCORE")},
                                     {"unset", std::string("0-1")},
                                     {"sides", std::vector<std::string>{"2"}}});
  }
  return asked("divergent-branch", builder.build());
}

TEST(Dispatch, ByAVariableThatDiffersBetweenRanksIsTheCause) {
  const Findings findings = by_environment(true);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{2});
  EXPECT_NE(findings[0].summary.find("`self.how` (train.py:14) is reduced"), std::string::npos)
      << findings[0].summary;
  EXPECT_NE(findings[0].fix.find("the same SCORE"), std::string::npos);
  EXPECT_TRUE(by_environment(false).empty()) << "the variable is equal";
}

}  // namespace
}  // namespace ddpdoctor::detectors
