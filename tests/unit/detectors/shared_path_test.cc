// SPDX-License-Identifier: Apache-2.0
// Which decision on a side's path led all its ranks to the call.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

TEST(SharedPath, TakesNoTestThatLeadsToTheCallOnBothResults) {
  constexpr const char* kFirst = R"(
def main_process_first():
    is_main = dist.get_rank() == 0
    if not is_main:
        dist.barrier()
    yield
    if is_main:
        dist.barrier()

def vocabulary(path):
    if not os.path.isfile(path):
        with main_process_first():
            build(path)

def main():
    vocabulary(path)
    dist.all_gather(sizes, mine)
)";
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, kFirst)
      .stack(kAll, in("all_gather", at("main", "all_gather")))
      .stack(0, in("barrier", "py:main_process_first@" + kTrain + ":7 | " +
                                  at("vocabulary", "with main_process_first") + " | " +
                                  at("main", "vocabulary(path)")));
  const Findings findings = asked("divergent-branch", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("not os.path.isfile(path)"), std::string::npos)
      << findings[0].summary;
}

TEST(SharedPath, NamesWhatLedAllRanksOfASideToTheCall) {
  constexpr const char* kFirst = R"(
def main_process_first():
    is_main = dist.get_rank() == 0
    if not is_main:
        dist.barrier()  # before
    yield
    if is_main:
        dist.barrier()  # after

def vocabulary(path):
    if not os.path.isfile(path):
        with main_process_first():
            build(path)

def main():
    vocabulary(path)
    dist.all_gather(sizes, mine)
)";
  const auto path = [](const auto& one, const std::string& line) {
    return one("main_process_first", line) + " | " + one("vocabulary", "with main_process_first") +
           " | " + one("main", "vocabulary(path)");
  };
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, std::string(kFirst))
      .stack(0, in("barrier", path(at, "# after")))
      .stack(1, in("barrier", path(at, "# before")))
      .stack(2, in("all_gather", at("main", "all_gather")))
      .barrier(0, 1, path(site, "# after"))
      .barrier(1, 1, path(site, "# before"))
      .call(2, {.operation = "all_gather", .sequence = 1, .site = site("main", "all_gather")});
  const Findings findings = asked("divergent-branch", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_NE(findings[0].summary.find("not os.path.isfile(path)"), std::string::npos)
      << findings[0].summary;
}

}  // namespace
}  // namespace ddpdoctor::detectors
