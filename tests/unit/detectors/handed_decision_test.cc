// SPDX-License-Identifier: Apache-2.0
// A framework leads the ranks to different calls, by what the user's program handed to it.
#include "base/text.h"
#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

const std::string kLoop = "/v/site-packages/stepper/loop.py";

const std::string kFramework = R"(class Loop:
    def run(self):
        for batch in self.batches:
            if "names" in batch and self.counts:
                self.count(batch["names"])
            self.step(batch)
)";

const std::string kDropsNames = R"(from stepper import Loop
def pack(rows):
    batch = {"rows": rows}
    if any(row.name for row in rows):
        batch["names"] = [row.name for row in rows]
    return batch
def main(rows):
    Loop(rows, collator=pack).run()
)";

std::map<int, std::string> numbered(const std::string& text) {
  std::map<int, std::string> out;
  for (const std::string_view line : base::split(text, '\n')) {
    out[static_cast<int>(out.size()) + 1] = line;
  }
  return out;
}

/// Rank 1 is in the step, the others count.
Findings told(const std::string& users, const std::string& framework = kFramework) {
  const std::string main =
      "py:Loop.run@" + kLoop + ":5 | py:main@/srv/train.py:8 | py:<module>@/srv/train.py:9";
  const std::string step =
      "py:Loop.run@" + kLoop + ":6 | py:main@/srv/train.py:8 | py:<module>@/srv/train.py:9";
  const std::string site = "main@/srv/train.py:8";
  model::JobModel job =
      ddpdoctor::detectors::job()
          .ranks(3)
          .source("/srv/train.py", users)
          .call(0, {.operation = "all_gather", .sequence = 4, .site = site})
          .call(2, {.operation = "all_gather", .sequence = 4, .site = site})
          .call(1, {.operation = "all_reduce", .sequence = 4, .site = site, .count = 8})
          .stack(kAll, in("all_gather", main))
          .stack(1, in("all_reduce", step))
          .build();
  job.framework_sources[kLoop] = numbered(framework);
  return asked("mismatched-op", job);
}

const Location* at_line(const Finding& finding, int line) {
  const auto found = std::find_if(
      finding.locations.begin(), finding.locations.end(),
      [line](const Location& one) { return one.file == "/srv/train.py" && one.line == line; });
  return found == finding.locations.end() ? nullptr : &*found;
}

TEST(HandedDecision, IsThePlaceWhereTheUserLeavesOutWhatTheFrameworkTests) {
  const Findings findings = told(kDropsNames);
  ASSERT_FALSE(findings.empty());
  const Location* const place = at_line(findings[0], 4);
  ASSERT_NE(place, nullptr) << findings[0].summary;
  EXPECT_EQ(place->function, "pack");
  EXPECT_NE(findings[0].fix.find("pack (train.py:4)"), std::string::npos) << findings[0].fix;
}

TEST(HandedDecision, IsNotAnItemThatTheFrameworkNeverNames) {
  std::string other = kFramework;
  other.replace(other.find("\"names\" in batch"), 16, "len(batch) > 9  ");
  other.replace(other.find("batch[\"names\"]"), 14, "batch         ");
  const Findings findings = told(kDropsNames, other);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(at_line(findings[0], 4), nullptr);
}

TEST(HandedDecision, IsNoneIfEveryRankDecidesAlike) {
  std::string alike = kDropsNames;
  alike.replace(alike.find("any(row.name for row in rows)"), 29, "WITH_NAMES");
  const Findings findings = told(alike);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(at_line(findings[0], 4), nullptr);
}

}  // namespace
}  // namespace ddpdoctor::detectors
