// SPDX-License-Identifier: Apache-2.0
#include "collector/model/call_frames.h"

#include <gtest/gtest.h>

namespace ddpdoctor::model {
namespace {

const std::string kTrainer = "/v/site-packages/transformers/trainer.py";

sources::RecordedCall call(std::int64_t sequence, int line) {
  return {.sequence = sequence,
          .operation = "all_reduce",
          .stack = {{.file = "/v/site-packages/torch/nn/module.py", .line = 3, .function = "call"},
                    {.file = kTrainer, .line = line, .function = "Trainer.step"},
                    {.file = "/srv/my train.py", .line = 9, .function = "<module>"}}};
}

JobModel told(std::vector<sources::RecordedCall> calls) {
  sources::Recording recording;
  recording.rank = 1;
  recording.groups.resize(1);
  recording.calls = std::move(calls);
  JobModel job;
  job.facts = newest_frames(
      recording, [](const sources::Recording&, std::size_t) { return std::string("0"); });
  return job;
}

// Two buckets of one step are one place: what came before them is what other ranks have, too.
TEST(CallFrames, KeepsTheNewestCallsFromDifferentFrames) {
  const JobModel job = told({call(1, 50), call(2, 60), call(3, 70), call(4, 80), call(5, 80)});
  const auto frames = frames_of_call(job, 1, "0", 3);
  ASSERT_EQ(frames.size(), 2U);  // the user's and the framework's
  EXPECT_EQ(frames[0].line, 70);
  EXPECT_EQ(frames[0].file, kTrainer);
  EXPECT_EQ(frames[1].file, "/srv/my train.py");
  EXPECT_EQ(frames_of_call(job, 1, "0", 5).size(), 2U);
  EXPECT_TRUE(frames_of_call(job, 1, "0", 4).empty());  // the same frames as the next
  EXPECT_TRUE(frames_of_call(job, 1, "0", 1).empty());
  EXPECT_TRUE(frames_of_call(job, 0, "0", 3).empty());
}

TEST(CallFrames, OfADamagedRecordingAreNone) {
  for (const std::string text : {"", "12", "12 f", "x f /srv/a.py", "-1 f /srv/a.py", "12  "}) {
    JobModel job;
    job.facts.push_back({.rank = 0,
                         .pid = {},
                         .kind = std::string(kCallFrames),
                         .fields = {{"group", std::string("0")},
                                    {"sequence", std::int64_t{1}},
                                    {"frames", std::vector<std::string>{text}}}});
    const auto frames = frames_of_call(job, 0, "0", 1);
    EXPECT_TRUE(frames.empty() || frames[0].file.empty()) << text;
  }
}

}  // namespace
}  // namespace ddpdoctor::model
