// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

/// The first process prepares, the others wait for it; its own barrier is under `guard`.
Findings with_first_process(const std::string& guard) {
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, R"(
def load(args):
    if args.local_rank not in [-1, 0]:
        dist.barrier()  # others
    if os.path.exists(name):
        return torch.load(name)
    features = make()
    if )" + guard + R"(:
        dist.barrier()  # first
    return features

def main():
    data = load(args)
    model = DistributedDataParallel(net)
)")
      .stack(kAll, in("barrier", at("load", "# others") + " | " + at("main", "data = load")))
      .stack(0, in("all_gather", at("main", "DistributedDataParallel(")));
  return asked("rank-conditional-collective", builder.build());
}

TEST(OwnHalf, NamesTheWayPastTheSecondHalfOfABarrier) {
  const Findings findings = with_first_process("args.local_rank == 0");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_TRUE(findings[0].summary.starts_with(
      "rank 0 returned from load() before its barrier (train.py:8)"))
      << findings[0].summary;
  EXPECT_NE(
      findings[0].fix.find("also before the return under `os.path.exists(name)` (train.py:4)"),
      std::string::npos)
      << findings[0].fix;
  EXPECT_EQ(findings[0].locations.back().line, 4);
}

TEST(OwnHalf, TakesNoBarrierOfOthersForTheSecondHalf) {
  for (const std::string guard : {"args.local_rank == 1", "features.valid"}) {
    const Findings findings = with_first_process(guard);
    ASSERT_EQ(findings.size(), 1U) << guard;
    EXPECT_TRUE(findings[0].summary.starts_with("rank 0 skipped barrier")) << findings[0].summary;
  }
}

/// A layer that reduces; rank 0 alone runs the model in a hook, and the calls are matched by order.
TEST(RankConditionalCollective, SeesACallOfALayerThatWasReachedFromAnotherLine) {
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, R"(
class Norm:
    def forward(self, x):
        dist.all_reduce(stats)

class Hook:
    def after_step(self, loop):
        if loop.step % self.every or dist.get_rank():
            return
        picture = loop.model.module(self.fixed)

def run(self):
    while self.step < n:
        self.model(x).sum().backward()
        for hook in self.hooks:
            hook.after_step(self)
)");
  const std::string layer = site("Norm.forward", "all_reduce") + " | ";
  const std::string step = site("run", "backward");
  const auto call = [&](const tests::Who& who, std::int64_t sequence, const std::string& through,
                        std::int64_t count, model::CallState state) {
    builder.call(who, {.operation = "all_reduce",
                       .sequence = sequence,
                       .site = through,
                       .count = count,
                       .state = state});
  };
  using enum model::CallState;
  const std::string main = " | main@/srv/main.py:9";
  for (std::int64_t sequence = 1; sequence < 9; sequence += 2) {
    call(kAll, sequence, layer + step + main, 16, kCompleted);
    call(kAll, sequence + 1, step + main, 146, kCompleted);
  }
  call(0, 9,
       layer + site("Hook.after_step", "loop.model.module") + " | " +
           site("run", "hook.after_step") + main,
       16, kCompleted);
  call(0, 10, layer + step + main, 16, kStarted);
  call({1, 2}, 9, layer + step + main, 16, kCompleted);
  call({1, 2}, 10, step + main, 146, kFailed);
  builder.killed(0, 6).exited({1, 2}, 1).ended();
  const Findings findings = asked("rank-conditional-collective", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_NE(findings[0].summary.find("all_reduce from train.py:9, because of `loop.step"),
            std::string::npos)
      << findings[0].summary;
  EXPECT_EQ(findings[0].locations.front().line, 9);
  EXPECT_EQ(findings[0].locations.back().line, 7);
}

/// A value whose conversion to text makes a collective, logged by `line`.
Findings with_late_text(const std::string& line) {
  JobBuilder builder = job();
  builder.ranks(2)
      .source(kTrain,
              "class Mean:\n    def __str__(self):\n        dist.all_reduce(t)\n\n"
              "def setup():\n    log.setLevel(INFO if dist.get_rank() == 0 else WARNING)\n\n"
              "def main():\n    for i in range(9):\n        " +
                  line + "\n        dist.barrier()\n")
      .stack(kAll, in("barrier", at("main", "dist.barrier")))
      .stack(0,
             in("all_reduce", at("Mean.__str__", "all_reduce") + " | " + at("main", "log.info")));
  return asked("rank-conditional-collective", builder.build());
}

TEST(RankConditionalCollective, KnowsThatALogFormatsItsArgumentsOnlyWhereItIsLetThrough) {
  const Findings findings = with_late_text("log.info('loss %s', Mean(loss))");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(findings[0].locations.back().line, 6);
  EXPECT_TRUE(with_late_text("log.info(f'loss {Mean(loss)}')").empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
