// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/shared_stands.h"

#include <gtest/gtest.h>

#include "collector/diagnosis/diagnosis.h"
#include "collector/graph/standing.h"
#include "collector/imports/logs/text_file.h"

namespace ddpdoctor::graph {
namespace {

/// py-spy's dump of a rank at this line.
std::string rank_at(int rank, const std::string& frames) {
  return "# rank " + std::to_string(rank) + "\nProcess " + std::to_string(100 + rank) +
         ": python train.py\nPython v3.11.4 (/usr/bin/python3.11)\n\nThread " +
         std::to_string(100 + rank) + " (active): \"MainThread\"\n" + frames +
         "    main (train.py:90)\n    <module> (train.py:99)\n\n";
}

const std::string kStep = "    update (train.py:40)\n";
const std::string kOther = "    report (train.py:60)\n";
const std::string kGather =
    "    synchronize (torch/cuda/streams.py:231)\n    gather (train.py:20)\n";

std::vector<Activity> activities(const std::string& text) {
  const model::JobModel job = imports::read_text(text, "dump.txt").value();
  std::vector<Activity> out;
  for (const Standing& one : standings(job)) {
    out.push_back(one.activity);
  }
  return out;
}

TEST(SharedStands, TwoRanksAtOneLineWaitForTheirGpusWhileAnotherDoes) {
  const auto seen =
      activities(rank_at(0, kStep) + rank_at(1, kGather) + rank_at(2, kStep) + rank_at(3, kOther));
  ASSERT_EQ(seen.size(), 4U);
  EXPECT_EQ(seen[0], Activity::kGpu);
  EXPECT_EQ(seen[2], Activity::kGpu);
  EXPECT_NE(seen[3], Activity::kGpu) << "one rank alone may be at work";
}

TEST(SharedStands, AllRanksAtOneLineMayBeInAStep) {
  for (const Activity seen : activities(rank_at(0, kStep) + rank_at(1, kStep))) {
    EXPECT_NE(seen, Activity::kGpu);
  }
}

TEST(SharedStands, ALineAloneWaitsIfAllGpusAreBusy) {
  const std::string dump = rank_at(0, kOther) + rank_at(1, kGather);
  EXPECT_NE(activities(dump).at(0), Activity::kGpu);
  EXPECT_EQ(activities("0, 100 %\n1, 100 %\n\n" + dump).at(0), Activity::kGpu);
  EXPECT_NE(activities("0, 3 %\n1, 100 %\n\n" + dump).at(0), Activity::kGpu);
}

/// Two ranks wait for their GPUs at one line, two at another; `file` has the function around both.
std::string two_places(const std::string& file) {
  std::string out;
  for (const int rank : {0, 1, 2, 3}) {
    const std::string line = rank < 2 ? "10" : "12";
    out += rank_at(rank, "    synchronize (torch/cuda/streams.py:231)\n    f" + line +
                             " (mine.py:" + line + ")\n    step (" + file + ":" + line + ")\n");
  }
  return out;
}

TEST(SharedStands, AtTwoLinesHaveDivergedUnlessTheyAreStagesOfAPipeline) {
  const auto kinds = [](const std::string& file) {
    const auto diagnosis =
        diagnosis::diagnose(imports::read_text(two_places(file), "dump.txt").value());
    return diagnosis.findings.empty() ? std::string() : diagnosis.findings[0].kind;
  };
  EXPECT_EQ(kinds("train.py"), "divergent-branch");
  EXPECT_EQ(kinds("pipeline/schedules.py"), "undetermined");
}

}  // namespace
}  // namespace ddpdoctor::graph
