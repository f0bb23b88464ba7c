// SPDX-License-Identifier: Apache-2.0
// Loops that one rank has left and that have several exits.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

/// One rank of two waits in the loop of `source`, the other has left it.
Finding asked_of(const char* source, const std::string& inside, const std::string& behind) {
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, source);
  builder.stack({0, 2}, in("all_reduce", inside));
  builder.stack(1, in("barrier", behind));
  const Findings findings = asked("divergent-branch", builder.build());
  EXPECT_EQ(findings.size(), 1U);
  return findings.empty() ? Finding{} : findings[0];
}

bool tells_line(const Finding& finding, int line) {
  return std::any_of(finding.locations.begin(), finding.locations.end(),
                     [line](const auto& one) { return one.line == line; });
}

TEST(WaysOut, NamesTheBreakInsideOfAWhileBeforeItsCondition) {
  constexpr const char* kDecode = R"(
def decode(ids):
    while ids.shape[1] < most:
        out = model(ids)
        if out.item() == eos:
            break
    return ids

def main():
    decode(ids)
    dist.barrier()
)";
  const Finding finding =
      asked_of(kDecode, at("decode", "model(ids)") + " | " + at("main", "    decode(ids)"),
               at("main", "barrier"));
  EXPECT_NE(finding.summary.find("`out.item() == eos` (train.py:4) or `ids.shape[1] < most`"),
            std::string::npos)
      << finding.summary;
  EXPECT_TRUE(tells_line(finding, 4)) << essence({finding});
  EXPECT_TRUE(tells_line(finding, 2));
}

TEST(WaysOut, NamesBothInOneFunctionToo) {
  constexpr const char* kSolve = R"(
class Solver:
    async def solve(self, residual):
        while residual.norm() > self.tolerance:
            dist.all_reduce(residual)
            if not torch.isfinite(residual).all():
                break
        dist.barrier()
)";
  const Finding finding =
      asked_of(kSolve, at("Solver.solve", "all_reduce"), at("Solver.solve", "barrier"));
  EXPECT_NE(finding.summary.find(
                "`not torch.isfinite(residual).all()` (train.py:5) or `residual.norm() > "),
            std::string::npos)
      << finding.summary;
  EXPECT_TRUE(tells_line(finding, 3));
  EXPECT_TRUE(tells_line(finding, 5));
}

TEST(WaysOut, NamesTheConditionAloneWhereEveryRankBreaksAlike) {
  constexpr const char* kCounted = R"(
def main():
    while loss.item() > tolerance:
        dist.all_reduce(grads)
        if dist.get_world_size() > 64:
            break
    dist.barrier()
)";
  const Finding finding = asked_of(kCounted, at("main", "all_reduce"), at("main", "barrier"));
  EXPECT_NE(finding.summary.find("`loss.item() > tolerance` (train.py:2) differed"),
            std::string::npos)
      << finding.summary;
  EXPECT_FALSE(tells_line(finding, 4));
}

TEST(WaysOut, NamesTheBreakAloneWhereTheWhileIsEndless) {
  constexpr const char* kEndless = R"(
def main():
    while True:
        dist.all_reduce(grads)
        if loss.item() < tolerance:
            break
    dist.barrier()
)";
  const Finding finding = asked_of(kEndless, at("main", "all_reduce"), at("main", "barrier"));
  EXPECT_NE(finding.summary.find("`loss.item() < tolerance` (train.py:4) differed"),
            std::string::npos)
      << finding.summary;
}

TEST(WaysOut, LeavesATestThatAnOuterLoopRepeatsAlone) {
  constexpr const char* kInner = R"(
def main():
    while pending:
        for batch in loader:
            if batch.sum().item() > 3:
                dist.all_reduce(grads)
        dist.barrier()
)";
  const Finding finding = asked_of(kInner, at("main", "all_reduce"), at("main", "barrier"));
  EXPECT_EQ(finding.summary.find(" or `"), std::string::npos) << finding.summary;
}

// The condition is a value that one rank read differently from its own file: that rank deviates,
// whichever side has left the loop.
TEST(WaysOut, BlamesTheFewWhereTheOthersHaveLeft) {
  constexpr const char* kResumed = R"(
def resumed():
    return json.loads(Path(f"state-{dist.get_rank()}.json").read_text())["epoch"]

def main():
    epoch = resumed()
    while epoch < 4:
        dist.all_reduce(loss)
        epoch += 1
    dist.barrier()
)";
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, kResumed);
  builder.stack(kAll, in("barrier", at("main", "barrier")));
  builder.stack(2, in("all_reduce", at("main", "all_reduce")));
  const Findings findings = asked("divergent-branch", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_TRUE(tells_line(findings[0], 7)) << essence(findings);
}

}  // namespace
}  // namespace ddpdoctor::detectors
