// SPDX-License-Identifier: Apache-2.0
// Ranks in different iterations of a loop, as opposed to ranks that make more iterations of it.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

const std::string kBackward = "backward()";

/// Two ranks; both make the calls from `sites`, one sequence number each. Returns the next number.
std::int64_t both_call(JobBuilder& builder, const std::vector<std::string>& sites) {
  std::int64_t sequence = 1;
  for (const std::string& one : sites) {
    builder.all_reduce(kAll, sequence++, 8, one);
  }
  return sequence;
}

/// `site`, `many` times.
std::vector<std::string> times(std::size_t many, const std::string& site) {
  return std::vector<std::string>(many, site);
}

void operator+=(std::vector<std::string>& all, const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

/// Rank 1 is after both loops, in the barrier of save(); rank 0 is in the backward after `before`.
model::JobModel stopped(const std::string& epoch_end, std::vector<std::string> before) {
  const std::string main = "    save()";
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, R"(
def save():
    dist.barrier()

def main():
    model = DDP(net)
    for epoch in range(max_epochs):
        for x in batches:
            loss(x).backward()
)" + epoch_end + R"(
    save()
)");
  const std::int64_t next = both_call(builder, before);
  builder.all_reduce(0, next, 8, site("main", kBackward))
      .stack(0, in_backward(at("main", kBackward)))
      .barrier(1, next, site("save", "barrier") + " | " + site("main", main))
      .stack(1, in("barrier", at("save", "barrier") + " | " + at("main", main)));
  return builder.build();
}

std::vector<std::string> steps(std::size_t many) {
  std::vector<std::string> sites = {site("main", "DDP(")};
  sites += times(many, site("main", kBackward));
  return sites;
}

TEST(Passes, SeesAStopThatLeftTheLoopOverEpochs) {
  const model::JobModel job =
      stopped("        if self.should_stop:\n            break\n", steps(12));
  const Findings findings = asked("divergent-branch", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);  // no value was read
  EXPECT_NE(findings[0].summary.find("self.should_stop"), std::string::npos);
  EXPECT_NE(findings[0].fix.find("numbers of batches"), std::string::npos);
  EXPECT_TRUE(asked("uneven-inputs", job).empty());
}

TEST(Passes, ReadsTheStepOfThePassFromTheLoop) {
  for (const std::int64_t done : {1, 3}) {
    model::JobModel job = stopped("        if self.should_stop:\n            break\n", steps(12));
    put_loops(job, 0, "main", {over("range", 4, 10), over("list_iterator", done, 4)});
    EXPECT_EQ(asked("divergent-branch", job).size(), done == 1 ? 1U : 0U) << done;
    EXPECT_EQ(asked("uneven-inputs", job).size(), done == 1 ? 0U : 1U) << done;
  }
}

TEST(Passes, LeavesALoopOverEpochsWithoutAStopToTheBatches) {
  for (const char* end :
       {"        print(epoch)\n", "        if epoch == max_epochs - 1:\n            break\n"}) {
    const model::JobModel job = stopped(end, steps(12));
    EXPECT_TRUE(asked("divergent-branch", job).empty()) << end;
    const Findings findings = asked("uneven-inputs", job);
    ASSERT_EQ(findings.size(), 1U) << end;
    EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
    EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  }
}

TEST(Passes, KnowsANewEpochByTheCallAtTheEndOfTheOldOne) {
  std::vector<std::string> before;
  const std::string end =
      "        dist.all_reduce(total)\n        if self.should_stop:\n            break\n";
  before += {site("main", "DDP(")};
  for (int epoch = 0; epoch < 3; ++epoch) {
    before += times(4, site("main", kBackward));
    before += {site("main", "all_reduce(total)")};
  }
  const Findings findings = asked("divergent-branch", stopped(end, before));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].fix.find("numbers of batches"), std::string::npos);
}

constexpr std::string_view kMeters = R"(
def synchronize(meters):
    for meter in meters.values():
        dist.barrier()

def validate():
    for x in val_loader:
        dist.barrier()  # of a batch

def train_one_epoch():
    for x in batches:
        loss(x).backward()
    synchronize(meters)
    validate()

def main():
    for epoch in range(epochs):
        train_one_epoch()
)";
const std::string kEpoch = "        train_one_epoch()";

/// Rank 1 makes one more call in this function at the end of an epoch, after `common`, which both
/// made there; rank 0 is in a backward.
model::JobModel lingering(const std::string& function, const std::string& call,
                          std::size_t common) {
  const std::string inner = "    " + function + (function == "validate" ? "()" : "(meters)");
  const std::string out =
      site(function, call) + " | " + site("train_one_epoch", inner) + " | " + site("main", kEpoch);
  const std::string step = site("train_one_epoch", kBackward) + " | " + site("main", kEpoch);
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, kMeters);
  std::int64_t sequence = both_call(builder, times(5, step));
  for (std::size_t i = 0; i < common; ++i) {
    builder.barrier(kAll, sequence++, out);
  }
  builder.all_reduce(0, sequence, 8, step)
      .stack(0, in_backward(at("train_one_epoch", kBackward) + " | " + at("main", kEpoch)))
      .barrier(1, sequence, out)
      .stack(1, in("barrier", at(function, call) + " | " + at("train_one_epoch", inner) + " | " +
                                  at("main", kEpoch)));
  return builder.build();
}

TEST(Passes, SeesTheMeterThatOnlyOneRankHas) {
  const model::JobModel job = lingering("synchronize", "barrier()", 2);
  const Findings findings = asked("collective-count", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_NE(findings[0].summary.find("meters.values()"), std::string::npos);
  EXPECT_TRUE(asked("uneven-inputs", job).empty());
}

TEST(Passes, SeesTheValidationThatOneRankWasThroughWithEarlier) {
  const model::JobModel job = lingering("validate", "# of a batch", 2);
  const Findings findings = asked("uneven-inputs", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_NE(findings[0].summary.find("val_loader"), std::string::npos);
}

TEST(Passes, SeesAMeterMoreInTheFunctionOfTheSteps) {
  const std::string call = "        train()";
  const std::string inner = "meter.reduce()";
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, R"(
def reduce(self):
    dist.barrier()
    dist.all_reduce(sums)

def train():
    for x in batches:
        loss(x).backward()
    for meter in meters.values():
        meter.reduce()

def main():
    for epoch in range(epochs):
        train()
)");
  const auto in_train = [&](const std::string& text) {
    return site("train", text) + " | " + site("main", call);
  };
  const std::string barrier = site("reduce", "barrier") + " | " + in_train(inner);
  std::int64_t next = both_call(builder, times(3, in_train(kBackward)));
  builder.barrier(kAll, next++, barrier);
  builder.all_reduce(kAll, next++, 2, site("reduce", "all_reduce") + " | " + in_train(inner));
  builder.all_reduce(0, next, 8, in_train(kBackward))
      .stack(0, in_backward(at("train", kBackward) + " | " + at("main", call)))
      .barrier(1, next, barrier)
      .stack(1, in("barrier", at("reduce", "barrier") + " | " + at("train", inner) + " | " +
                                  at("main", call)));
  const Findings findings = asked("collective-count", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_TRUE(asked("uneven-inputs", builder.build()).empty());
}

TEST(Passes, BelievesInAShorterEpochWhereBothWereInItLast) {
  const model::JobModel job = lingering("synchronize", "barrier()", 0);
  const Findings findings = asked("uneven-inputs", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_TRUE(asked("collective-count", job).empty());
}

/// Rank 0 is in a checkpoint triggered by its own clock, rank 1 in a backward; both made these
/// calls before, each with the size given.
model::JobModel due(const std::vector<std::pair<std::string, std::int64_t>>& before,
                    std::int64_t bucket, std::int64_t first = 1) {
  const std::string checkpoint = "        checkpoint.step()";
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, R"(
def step(self):
    if not self.due:
        return
    dist.all_gather_object(states, state)

def main():
    model = DDP(net)
    for n in range(args.steps):
        loss(x).backward()
        checkpoint.step()
)");
  for (const auto& [text, count] : before) {
    builder.all_reduce(kAll, first++, count, site("main", text));
  }
  builder.all_reduce(1, first, bucket, site("main", kBackward))
      .stack(1, in_backward(at("main", kBackward)))
      .call(0, {.operation = "all_gather",
                .sequence = first,
                .site = site("step", "all_gather_object") + " | " + site("main", checkpoint)})
      .stack(0, in("all_gather_object",
                   at("step", "all_gather_object") + " | " + at("main", checkpoint)));
  return builder.build();
}

TEST(Passes, SeesTheBackwardOfTheNextStep) {
  const model::JobModel job = due(
      {{"DDP(", 8}, {kBackward, 8}, {"DDP(", 1}, {kBackward, 8}, {kBackward, 8}, {kBackward, 8}},
      8);
  EXPECT_TRUE(asked("unused-parameters", job).empty());
  const Findings findings = asked("divergent-branch", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_NE(findings[0].summary.find("not self.due"), std::string::npos);
}

TEST(Passes, SeesTheBucketThatIsMissingInThisStep) {
  const model::JobModel job = due({{"DDP(", 8},
                                   {kBackward, 8},
                                   {kBackward, 9},
                                   {"DDP(", 1},
                                   {kBackward, 8},
                                   {kBackward, 9},
                                   {kBackward, 8}},
                                  9);
  const Findings findings = asked("unused-parameters", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_TRUE(asked("divergent-branch", job).empty());
}

TEST(Passes, CountsTheBucketsOfAStep) {
  std::vector<std::pair<std::string, std::int64_t>> before = {{"DDP(", 8}};
  for (const std::int64_t size : {8, 9, 7}) {
    before.emplace_back(kBackward, size);
  }
  before.emplace_back("DDP(", 1);
  for (const std::int64_t size : {8, 9}) {
    before.emplace_back(kBackward, size);
  }
  EXPECT_EQ(asked("unused-parameters", due(before, 7)).size(), 1U);
  before.emplace_back(kBackward, 7);
  EXPECT_TRUE(asked("unused-parameters", due(before, 8)).empty());
}

TEST(Passes, SeesTheBucketThatIsMissingInTheLastStep) {
  const auto told = [](const char* kind, std::size_t buckets) {
    JobBuilder builder = job();
    builder.ranks(2).source(kTrain, R"(
def main():
    model = DDP(net)
    for x in batches:
        loss(x).backward()
        check()
    dist.barrier()
)");
    builder.all_reduce(kAll, 1, 1, site("main", "DDP("));
    std::int64_t next = 2;
    for (const std::int64_t size : {8, 9}) {
      builder.all_reduce(kAll, next++, size, site("main", kBackward));
    }
    builder.all_reduce(kAll, next++, 1, site("main", "check()"));
    for (std::size_t i = 0; i < buckets; ++i) {
      builder.all_reduce(kAll, next++, i % 2 == 0 ? 8 : 9, site("main", kBackward));
    }
    builder.all_reduce(0, next, buckets % 2 == 0 ? 8 : 9, site("main", kBackward))
        .stack(0, in_backward(at("main", kBackward)))
        .barrier(1, next, site("main", "barrier"))
        .stack(1, in("barrier", at("main", "barrier")));
    return asked(kind, builder.build()).size();
  };
  EXPECT_EQ(told("unused-parameters", 1), 1U);
  EXPECT_EQ(told("uneven-inputs", 1), 0U);
  EXPECT_EQ(told("unused-parameters", 2), 0U);
  EXPECT_EQ(told("uneven-inputs", 2), 1U);
}

TEST(Passes, HedgesWhereNoRecordTellsWhereAStepBegins) {
  const model::JobModel job =
      due({{kBackward, 8}, {kBackward, 8}, {kBackward, 8}, {kBackward, 8}}, 8, 100);
  EXPECT_TRUE(asked("unused-parameters", job).empty());
  const Findings findings = asked("divergent-branch", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_NE(findings[0].fix.find("unused"), std::string::npos);
}

TEST(Passes, TakesOtherArgumentsBehindALoopForAnotherCall) {
  const auto told = [](const char* kind, std::int64_t size) {
    JobBuilder builder = job();
    builder.ranks(2).source(kTrain, R"(
def main():
    for batch in loader:
        loss(batch).backward()
    dist.all_reduce(right)
)");
    builder.all_reduce(kAll, 1, 8, site("main", kBackward));
    builder
        .call(0, {.operation = "all_reduce",
                  .sequence = 2,
                  .site = site("main", kBackward),
                  .count = 866,
                  .shape = std::vector<std::int64_t>{866},
                  .dtype = "float32"})
        .call(1, {.operation = "all_reduce",
                  .sequence = 2,
                  .site = site("main", "all_reduce"),
                  .count = size,
                  .shape = std::vector<std::int64_t>{size},
                  .dtype = "int64"})
        .stack(0, in_backward(at("main", kBackward)))
        .stack(1, in("all_reduce", at("main", "all_reduce")));
    return asked(kind, builder.build());
  };
  EXPECT_TRUE(told("mismatched-dtype", 2).empty());
  ASSERT_EQ(told("uneven-inputs", 2).size(), 1U);
  EXPECT_EQ(told("uneven-inputs", 2)[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(told("mismatched-dtype", 866).size(), 1U);  // one size: perhaps one call with two types
}

TEST(Passes, DoNotDependOnTheOrderOfRanks) {
  const model::JobModel meters = lingering("synchronize", "barrier()", 2);
  EXPECT_EQ(essence(asked("collective-count", meters)),
            essence(asked("collective-count", records_reversed(meters))));
  const model::JobModel early =
      stopped("        if self.should_stop:\n            break\n", steps(12));
  EXPECT_EQ(essence(asked("divergent-branch", early)),
            essence(asked("divergent-branch", records_reversed(early))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
