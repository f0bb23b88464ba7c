// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/loop_bound.h"

#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kState =
    "def resume(rank):\n    return int(open(f'rank{rank}.txt').read())\n";

std::optional<LoopBound> bound(const std::string& start, const std::map<int, std::string>& held) {
  JobBuilder builder = job().ranks(3);
  builder.source("/srv/state.py", kState);
  builder.source("/srv/train.py",
                 "from state import resume\n\ndef main(rank):\n    start = " + start +
                     "\n    for step in range(start, 10):\n        dist.all_reduce(x)\n");
  for (const auto& [rank, value] : held) {
    builder.fact("value",
                 {{"role", std::string("held")},
                  {"file", std::string("/srv/train.py")},
                  {"line", std::int64_t{6}},
                  {"function", std::string("main")},
                  {"at", std::int64_t{6}},
                  {"expression", std::string("start")},
                  {"value", value},
                  {"state", std::string("known")}},
                 rank);
  }
  Parting parting;
  parting.odd.ranks = {1};
  parting.rest.ranks = {0, 2};
  return unlike_bound(builder.build(), {.file = "/srv/train.py", .line = 5, .function = "main"},
                      parting);
}

TEST(LoopBound, NamesTheBoundThatDiffersAndItsOrigin) {
  const auto found = bound("resume(rank)", {{0, "2"}, {1, "4"}, {2, "2"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "start");
  EXPECT_EQ(found->values, "4 on rank 1, 2 on ranks 0 and 2");
  EXPECT_EQ(found->of, "file system");
  EXPECT_EQ(found->from.line, 2);
}

TEST(LoopBound, IsSilentWhereTheBoundsAreAlike) {
  EXPECT_FALSE(bound("resume(rank)", {{0, "2"}, {1, "2"}, {2, "2"}}));
  EXPECT_FALSE(bound("0", {}));
}

}  // namespace
}  // namespace ddpdoctor::detectors
