// SPDX-License-Identifier: Apache-2.0
// Training as a generator of events: ranks do not diverge at its last event, but at the end of its
// loop.
#include <algorithm>

#include <gtest/gtest.h>

#include "collector/model/observed_values.h"
#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

/// `in_loop` and `behind` are what the generator yields.
JobBuilder told(const std::string& in_loop, const std::string& behind,
                const std::string& header = "for e in events:") {
  const std::string source =
      "def training(source):\n  while (batch := source()) is not None:\n"
      "    model(batch).backward()\n    yield " +
      in_loop + "\n  yield " + behind + "\n\ndef averaged(events):\n  " + header +
      "\n    if e.name == 'end':\n"
      "      dist.all_gather(seen, e.step)\n    yield e\n";
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, source);
  builder.stack(0, in_backward(at("training", "backward") + " | " + at("averaged", "in events")));
  builder.stack(1, in("all_gather", at("averaged", "all_gather")));
  return builder;
}

TEST(GeneratorLoop, IsWhatEndedWhereTheItemComesFromBehindIt) {
  const model::JobModel job = told("Event('step', loss)", "Event('end', 0)").build();
  const Findings findings = asked("uneven-inputs", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].locations.back().line, 2);
  EXPECT_TRUE(asked("divergent-branch", job).empty());
  const auto spaced = told("Event('step', loss)", "Event('end', 0)", "for  e  in events :");
  EXPECT_EQ(asked("uneven-inputs", spaced.build()).size(), 1U);
}

TEST(GeneratorLoop, LeavesTheTestOfAnItemFromWithinTheLoopAlone) {
  for (const model::JobModel& job : {told("Event(mark(loss), 'end')", "Event('end', 0)").build(),
                                     told("Event(mark(loss), loss)", "Event('last', 0)").build()}) {
    EXPECT_TRUE(asked("uneven-inputs", job).empty());
    EXPECT_EQ(asked("divergent-branch", job).size(), 1U);
  }
}

/// Rank 1 has left `for step in steps()`, the others are in it.
JobBuilder left(const std::string& generator, const std::string& loop) {
  const std::string source = "import signal, time\nfrom torch.utils.data import DataLoader\n" +
                             generator + "\ndef fit(self):\n  for step in " + loop +
                             ":\n    dist.all_reduce(grads)\n  dist.barrier()\n";
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, source);
  builder.stack({0, 2}, in("all_reduce", at("fit", "all_reduce")));
  builder.stack(1, in("barrier", at("fit", "barrier")));
  return builder;
}

const std::string kFlag =
    "stop = False\ndef note(number, frame):\n  global stop\n  stop = True\n"
    "signal.signal(signal.SIGUSR1, note)\n";

TEST(GeneratorLoop, EndsByTheConditionOfTheUsersGenerator) {
  const std::string steps =
      kFlag +
      "def steps(most):\n  at = 0\n  while not stop and at < most:\n    yield at\n    at += 1\n";
  for (const std::string loop : {"steps(9)", "enumerate(steps(9))"}) {
    const model::JobModel job = left(steps, loop).build();
    EXPECT_TRUE(asked("uneven-inputs", job).empty()) << loop;
    const Findings findings = asked("uncoordinated-stop", job);
    ASSERT_EQ(findings.size(), 1U) << loop;
    EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  }
}

TEST(GeneratorLoop, OfAnObjectEndsInItsIter) {
  const std::string timed =
      "class Timed:\n  def __init__(self, until):\n    self.until = until\n"
      "  def __iter__(self):\n    for batch in DataLoader(data):\n"
      "      if time.time() > self.until:\n        return\n      yield batch\n";
  const model::JobModel job = left(timed, "Timed(until)").build();
  EXPECT_TRUE(asked("uneven-inputs", job).empty());
  const Findings findings = asked("divergent-branch", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_TRUE(std::any_of(findings[0].locations.begin(), findings[0].locations.end(),
                          [](const Location& one) { return one.line == 8; }));
}

TEST(GeneratorLoop, AsksTheObjectThatItsClassWasGiven) {
  const std::string preemption =
      "class Preemption:\n  def __init__(self):\n    self.asked = False\n"
      "    signal.signal(signal.SIGUSR1, self.note)\n  def note(self, number, frame):\n"
      "    self.asked = True\n  @property\n  def pending(self):\n    return self.asked\n"
      "  def __bool__(self):\n    return self.pending\n\n"
      "class Steps:\n  def __init__(self, guard):\n    self.guard = guard\n"
      "  def __iter__(self):\n    at = 0\n    while not self.guard and at < 99:\n      yield at\n"
      "      at += 1\n\nguard = Preemption()\n";
  const model::JobModel job = left(preemption, "Steps(guard)").build();
  EXPECT_TRUE(asked("uneven-inputs", job).empty());
  const Findings findings = asked("uncoordinated-stop", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
}

/// A generator over batches that ends by what the rank counted in its own, in a comprehension and
/// in a loop.
TEST(GeneratorLoop, EndsBeforeItsDataByAQuantityOfTheRank) {
  const std::string take =
      "def take(rows, limit):\n  spent = 0\n  for row in rows:\n"
      "    spent += int((row != 0).sum())\n    yield row\n    if TEST:\n      return\n"
      "def learn(row):\n  dist.all_reduce(grads)\n";
  const std::string source = "from torch.utils.data import DataLoader\n" + take +
                             "def fit():\n  made = [learn(row) for row in take(DataLoader(data), "
                             "9)]\n  dist.barrier()\n";
  const auto told = [&source](const std::string& test) {
    JobBuilder builder = job();
    builder.ranks(3).source(kTrain, std::string(source).replace(source.find("TEST"), 4, test));
    const std::string inner = at("learn", "all_reduce") + " | " +
                              at("fit.<locals>.<listcomp>", "made = ") + " | " +
                              at("fit", "made = ");
    builder.stack({0, 2}, in("all_reduce", inner));
    builder.stack(1, in("barrier", at("fit", "barrier")));
    return builder.build();
  };
  const Findings findings = asked("divergent-branch", told("spent >= limit"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_NE(findings[0].confidence, Confidence::kCertain) << "the data may have been shorter";
  EXPECT_TRUE(std::any_of(findings[0].locations.begin(), findings[0].locations.end(),
                          [](const Location& one) { return one.line == 7; }));
  EXPECT_TRUE(asked("divergent-branch", told("row is None")).empty());
  EXPECT_EQ(asked("uneven-inputs", told("row is None")).size(), 1U) << "the end of the data";
}

TEST(GeneratorLoop, EndsByAnObjectThatAFactoryMade) {
  const std::string drain =
      "import threading\nclass Own:\n  def __init__(self):\n    self.on = threading.Event()\n"
      "    signal.signal(signal.SIGUSR1, lambda *_: self.on.set())\n  def __bool__(self):\n"
      "    return self.on.is_set()\nclass Never(Own):\n  def __bool__(self):\n    return False\n"
      "def made(pooled):\n  kind = Never if pooled else Own\n  return kind()\n"
      "drain = made(False)\ndef steps(most):\n  at = 0\n  while at < most and not drain:\n"
      "    yield at\n    at += 1\n";
  const model::JobModel job = left(drain, "steps(9)").build();
  EXPECT_TRUE(asked("uneven-inputs", job).empty());
  const Findings findings = asked("uncoordinated-stop", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
}

TEST(GeneratorLoop, ThatYieldsWhatThereIsRunsOutOfData) {
  for (const std::string inside :
       {"  for batch in DataLoader(data):\n    yield batch\n",
        "  at = 0\n  while at < len(data):\n    yield data[at]\n    at += 1\n"}) {
    const model::JobModel job = left("def steps():\n" + inside, "steps()").build();
    EXPECT_EQ(asked("uneven-inputs", job).size(), 1U) << inside;
    EXPECT_TRUE(asked("divergent-branch", job).empty()) << inside;
  }
}

/// Rank 1 has left `for batch in ITEMS`, with recorded calls of all ranks.
Confidence confidence_for(const std::string& items) {
  const std::string source =
      "from torch.utils.data import DataLoader\n\ndef stream(n):\n  for one in range(n):\n"
      "    yield read(one)\n\ndef main():\n  for batch in " +
      items + ":\n    model(batch).sum().backward()\n  dist.barrier()\n";
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, source);
  builder.history(kAll, 1, 20, "all_reduce", site("main", "backward"));
  builder.all_reduce(0, 21, 5, site("main", "backward"));
  builder.all_reduce(2, 21, 5, site("main", "backward"));
  builder.barrier(1, 21, site("main", "barrier"));
  builder.stack({0, 2}, in_backward(at("main", "backward")));
  builder.stack(1, in("barrier", at("main", "barrier")));
  const Findings findings = asked("uneven-inputs", builder.build());
  EXPECT_EQ(findings.size(), 1U) << items;
  return findings.empty() ? Confidence::kPossible : findings[0].confidence;
}

TEST(UnevenInputs, IsCertainOnlyWhereTheNumberOfItemsIsWhatDiffers) {
  EXPECT_EQ(confidence_for("DataLoader(data)"), Confidence::kCertain);
  EXPECT_EQ(confidence_for("stream(count)"), Confidence::kLikely) << "may end for any reason";
  EXPECT_EQ(confidence_for("self.handlers[name]"), Confidence::kLikely) << "nobody knows";
}

/// Ranks 0 and 1 save in a hook, the others are in the next step. `count`: hooks of the latter.
model::JobModel saves(const std::string& test, std::int64_t count) {
  const std::string source = R"(
class Saver:
    def plan(self, step):
        if step % 12 == 0 and )" +
                             test + R"(:
            yield step
    def __call__(self, step):
        for target in self.plan(step):
            dist.gather(self.state)
def train(model, hooks):
    for step in range(100):
        model(step).backward()
        for hook in hooks:
            hook(step)
)";
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain, source);
  builder.stack({2, 3}, in("all_reduce", at("train", "backward")));
  builder.stack({0, 1}, in("gather", at("Saver.__call__", "dist.gather") + " | " +
                                         at("train", "hook(step)")));
  model::JobModel told = builder.build();
  for (const model::Rank rank : {0, 1, 2, 3}) {
    model::SeenValue loop{.rank = rank,
                          .role = model::ValueRole::kLoop,
                          .file = kTrain,
                          .line = builder.line_of(kTrain, "for hook in"),
                          .function = "train",
                          .expression = "hooks",
                          .value = rank < 2 ? "iteration 2 of 2" : model::said_length(count),
                          .state = model::ValueState::kKnown,
                          .reason = "",
                          .items = rank < 2 ? 2 : count};
    told.facts.push_back(model::fact_of(loop));
  }
  return told;
}

TEST(GeneratorLoop, DecidesByTheRankInsideALoopOfEquallyManyItems) {
  const model::JobModel job = saves("dist.get_rank() < 2", 2);
  const Findings findings = asked("rank-conditional-collective", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1}));
  EXPECT_TRUE(std::any_of(findings[0].locations.begin(), findings[0].locations.end(),
                          [](const Location& one) { return one.line == 3; }));
  EXPECT_TRUE(asked("uneven-inputs", job).empty());
  EXPECT_TRUE(asked("rank-conditional-collective", saves("dist.get_rank() < 2", 3)).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
