// SPDX-License-Identifier: Apache-2.0
// Every golden capture is diagnosed again, listed in reverse order and with its ranks renumbered:
// the same kinds in the same order, and the same culprits under their new numbers.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "collector/diagnosis/diagnosis.h"
#include "collector/imports/capture/capture.h"
#include "tests/support/places.h"
#include "tests/support/shuffle.h"

namespace ddpdoctor::diagnosis {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

std::vector<std::filesystem::path> captures() {
  std::vector<std::filesystem::path> out;
  for (const auto& entry :
       std::filesystem::directory_iterator(tests::source_file("tests/golden"))) {
    if (entry.path().extension() == ".json") {
      out.push_back(entry.path());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string said(const model::JobModel& job, int world) {
  std::string out;
  for (const detectors::Finding& finding : diagnose(job).findings) {
    const model::RankSet ranks =
        world > 0 ? tests::renumbered(finding.culprits, world) : finding.culprits;
    out += finding.kind + " of " + ranks.ranges() + "\n";
  }
  return out;
}

class Golden : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Golden, DoesNotDependOnOrderOrNumbersOfRanks) {
  const auto job = imports::read_capture(text_of(GetParam()), GetParam().filename().string());
  ASSERT_TRUE(job) << job.error().what;
  const std::string before = said(*job, 0);
  const bool healthy = GetParam().filename().string().starts_with("healthy__");
  EXPECT_FALSE(before.empty() && !healthy);
  const model::JobModel backwards = tests::listed_backwards(*job);
  EXPECT_EQ(said(backwards, 0), before);
  if (job->world_size && !tests::numbers_matter(*job)) {
    const model::JobModel anew = tests::renumbered(*job);
    EXPECT_EQ(said(anew, *job->world_size), before);
  }
}

INSTANTIATE_TEST_SUITE_P(Captures, Golden, testing::ValuesIn(captures()),
                         [](const auto& one) { return one.param.stem().string(); });

}  // namespace
}  // namespace ddpdoctor::diagnosis
