// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr const char* kOwnSync = R"(
def main():
    for i, batch in enumerate(corpus(rank)):
        with accumulator.micro(batch) as ready:
            model(batch).sum().backward()
    dist.broadcast(norm, 0)
)";

/// Rank 0 is after the loop; `micro` is the context that the loop enters around its backward, in
/// another file.
Findings with_own_sync(std::string_view kind, const std::string& micro,
                       std::string_view train = kOwnSync) {
  JobBuilder builder = job();
  builder.ranks(2)
      .source(kTrain, std::string(train))
      .source("/srv/accumulate.py", micro)
      .history(kAll, 1, 16, "all_reduce", site("main", "backward"))
      .broadcast(0, 17, 0, site("main", "broadcast"));
  builder.all_reduce(1, 17, 10, site("main", "backward"));
  builder.stack(0, in("broadcast", at("main", "broadcast")));
  builder.stack(1, in_backward(at("main", "backward")));
  return asked(kind, builder.build());
}

TEST(GradientSync, CountsNoStepsWhereEachRankChoosesWhichToSynchronise) {
  const std::string by_tokens = R"(
class Tokens:
    @contextlib.contextmanager
    def micro(self, batch):
        self.tokens += batch.numel()
        self.ready = self.tokens >= self.budget
        with contextlib.nullcontext() if self.ready else self.model.no_sync():
            yield self.ready
)";
  const Findings findings = with_own_sync("divergent-branch", by_tokens);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(findings[0].locations.back().line, 6);
  EXPECT_NE(findings[0].summary.find("`self.ready` (accumulate.py:6) differed between"),
            std::string::npos)
      << findings[0].summary;
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_TRUE(with_own_sync("uneven-inputs", by_tokens).empty());
}

TEST(GradientSync, TakesNoOutcomeFromNoSyncWhichTheWaitingRanksDidNotEnter) {
  const Findings findings = with_own_sync("divergent-branch", R"(
class Tokens:
    @contextlib.contextmanager
    def micro(self, batch):
        if self.seen(batch) >= self.budget:
            yield
        else:
            with self.model.no_sync():
                yield
)");
  ASSERT_EQ(findings.size(), 1U);
  for (const Location& place : findings[0].locations) {
    EXPECT_TRUE(place.outcomes.empty()) << place.line;
  }
}

/// Without a loop, no other number of batches would look the same.
TEST(GradientSync, EndsInNoSyncOnTheRanksWithoutTheCall) {
  const Findings findings = with_own_sync("divergent-branch", R"(
class Tokens:
    @contextlib.contextmanager
    def micro(self, batch):
        if self.seen(batch) >= self.budget:
            yield
        else:
            with self.model.no_sync():
                yield
)",
                                          R"(
def main():
    with accumulator.micro(batch) as ready:
        model(batch).sum().backward()
    dist.broadcast(norm, 0)
)");
  ASSERT_EQ(findings.size(), 1U);
  const auto& outcomes = findings[0].locations.back().outcomes;
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_EQ(outcomes[0].value + " on " + outcomes[0].ranks.ranges(), "False on 0");
  EXPECT_EQ(outcomes[1].value + " on " + outcomes[1].ranks.ranges(), "True on 1");
}

TEST(GradientSync, CountsStepsWhereAllSynchroniseTheSameOnes) {
  const std::string by_steps = R"(
class Steps:
    @contextlib.contextmanager
    def micro(self, batch):
        self.step += 1
        sync = self.step % self.accumulate == 0
        with contextlib.nullcontext() if sync else self.model.no_sync():
            yield sync
)";
  EXPECT_EQ(with_own_sync("uneven-inputs", by_steps).size(), 1U);
  std::string elsewhere = by_steps;
  elsewhere.replace(elsewhere.find("micro"), 5, "other");
  elsewhere.replace(elsewhere.find("self.step %"), 11, "batch.sum() >");
  EXPECT_EQ(with_own_sync("uneven-inputs", elsewhere).size(), 1U);
}

/// The context is what calling an object of the user's class gives.
TEST(GradientSync, FollowsAnObjectThatIsCalledForAContext) {
  constexpr std::string_view kCalledObject =
      "from accumulate import Tokens\n"
      "def main():\n"
      "    micro = Tokens(model)\n"
      "    for batch in corpus(rank):\n"
      "        with micro(batch):\n"
      "            model(batch).sum().backward()\n"
      "    dist.broadcast(norm, 0)\n";
  const auto told = [&](std::string_view kind, const std::string& method) {
    return with_own_sync(kind,
                         "class Tokens:\n"
                         "    @contextlib.contextmanager\n"
                         "    def " +
                             method +
                             "(self, batch):\n"
                             "        self.seen += batch.numel()\n"
                             "        if self.seen < self.budget:\n"
                             "            with self.model.no_sync():\n"
                             "                yield\n"
                             "        else:\n"
                             "            yield\n",
                         kCalledObject);
  };
  const Findings findings = told("divergent-branch", "__call__");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.back().line, 5);
  EXPECT_TRUE(told("uneven-inputs", "__call__").empty());
  EXPECT_TRUE(told("divergent-branch", "other").empty());
}

constexpr const char* kMetered = R"(
def update(value):
    values.append(value)
    if len(values) >= every:
        dist.all_gather(rows, mine)
def main():
    for i, batch in enumerate(corpus(rank)):
        with accumulator.micro(batch) as ready:
            model(batch).sum().backward()
        update(loss)
)";

/// Rank 0 is in the meter's gather, rank 1 in a backward, each in this iteration.
Findings metered(std::string_view kind, std::int64_t first, std::int64_t second) {
  JobBuilder builder = job();
  const std::string gather = "dist.all_gather(rows, mine)";
  builder.ranks(2)
      .source(kTrain, kMetered)
      .source("/srv/accumulate.py", R"(
class Tokens:
    @contextlib.contextmanager
    def micro(self, batch):
        self.tokens += batch.numel()
        with contextlib.nullcontext() if self.tokens >= budget else self.model.no_sync():
            yield
)")
      .history(kAll, 1, 16, "all_reduce", site("main", "backward"))
      .history(0, 17, 17, "all_gather", site("update", gather) + " | " + site("main", "update(l"))
      .all_reduce(1, 17, 10, site("main", "backward"))
      .stack(0, in("all_gather", at("update", gather) + " | " + at("main", "update(l")))
      .stack(1, in_backward(at("main", "backward")));
  model::JobModel told = builder.build();
  put_loops(told, 0, "main", {over("list", first, 99)});
  put_loops(told, 1, "main", {over("list", second, 99)});
  for (const model::Rank rank : {0, 1}) {
    told.facts.push_back({.rank = rank,
                          .pid = {},
                          .kind = "reducer",
                          .fields = {{"backward", 14.0 + rank}, {"finalized", 14.0 + rank}}});
  }
  return asked(kind, told);
}

TEST(GradientSync, WasLeftOutByTheRankThatIsAnIterationAhead) {
  const Findings findings = metered("divergent-branch", 60, 58);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(findings[0].locations.back().line, 5);
  EXPECT_NE(findings[0].summary.find("skipped all_reduce"), std::string::npos)
      << findings[0].summary;
}

/// The rank in backward is the one ahead: it passed by the meter.
TEST(GradientSync, IsNoMatterOfARankThatIsBehind) {
  for (const Finding& finding : metered("divergent-branch", 58, 60)) {
    EXPECT_EQ(finding.summary.find("tokens"), std::string::npos) << finding.summary;
  }
}

}  // namespace
}  // namespace ddpdoctor::detectors
