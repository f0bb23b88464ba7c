// SPDX-License-Identifier: Apache-2.0
// One loop, the same names, and another order on each rank.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

using Items = std::vector<std::string>;

model::Iteration through(std::string_view container, Items items) {
  model::Iteration out = over(container, 1, static_cast<std::int64_t>(items.size()));
  out.items = std::move(items);
  return out;
}

const std::string kLookup = "self.table[name].close()";

/// Rank 0 reduces in the loop, rank 1 gathers; `line` is what the loop calls.
model::JobModel closing(const model::Iteration& on_0, const model::Iteration& on_1,
                        const std::string& line = kLookup,
                        const std::string& header = "for name in self.table:") {
  const std::string way = " | " + at("main", line);
  JobBuilder builder = job();
  builder.ranks(2)
      .source(kTrain,
              "class Mean:\n  def close(self):\n    dist.all_reduce(self.sum)\n\n"
              "class Spread:\n  def close(self):\n    dist.all_gather(out, self.values)\n\n"
              "def main():\n  " +
                  header + "\n    " + line + "\n")
      .call(0, {.operation = "all_reduce", .sequence = 7, .site = site("close", "all_reduce")})
      .call(1, {.operation = "all_gather", .sequence = 7, .site = site("close", "all_gather")})
      .stack(0, in("all_reduce", at("close", "all_reduce") + way))
      .stack(1, in("all_gather", at("close", "all_gather") + way));
  model::JobModel told = builder.build();
  put_loops(told, 0, "main", {on_0});
  put_loops(told, 1, "main", {on_1});
  return told;
}

TEST(ItemOrder, OfADictIsToldWithTheItems) {
  const Findings findings =
      asked("collective-order",
            closing(through("dict", {"'loss'", "'bleu'"}), through("dict", {"'bleu'", "'loss'"})));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].locations.front().line, 10);
  EXPECT_NE(findings[0].summary.find("`self.table`"), std::string::npos) << findings[0].summary;
  EXPECT_NE(findings[0].summary.find("'bleu', … on rank 1"), std::string::npos)
      << findings[0].summary;
}

TEST(ItemOrder, OfASetIsThatOfASet) {
  const model::JobModel told =
      closing(through("set", {"'loss'", "'bleu'"}), through("set", {"'bleu'", "'loss'"}));
  EXPECT_EQ(asked("order-from-set", told).size(), 1U);
  EXPECT_TRUE(asked("collective-order", told).empty());
}

TEST(ItemOrder, IsNoneOfEqualOrOtherItems) {
  const model::Iteration first = through("dict", {"'loss'", "'bleu'"});
  EXPECT_TRUE(asked("collective-order", closing(first, first)).empty());
  EXPECT_TRUE(
      asked("collective-order", closing(first, through("dict", {"'bleu'", "'wer'"}))).empty());
  EXPECT_TRUE(asked("collective-order", closing(first, through("dict", {}))).empty());
}

TEST(ItemOrder, MeansNothingForDataThatARankReadsInItsOwnOrder) {
  const model::Iteration first = through("list", {"'shard-3'", "'shard-1'"});
  const model::Iteration second = through("list", {"'shard-1'", "'shard-3'"});
  EXPECT_TRUE(asked("collective-order", closing(first, second, "read(name).close()")).empty());
  EXPECT_EQ(asked("collective-order", closing(first, second, "getattr(self, name).close()")).size(),
            1U);
  EXPECT_TRUE(asked("collective-order", closing(first, second, "close(self.data[name])")).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
