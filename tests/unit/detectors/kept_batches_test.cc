// SPDX-License-Identifier: Apache-2.0
// A running job that keeps the tensors of its DataLoader with the file_system strategy.
#include "collector/model/kept_segments.h"
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

/// Lines 1-9 of /srv/train.py; `body` is line 8.
std::string script(const std::string& body) {
  return "import torch.multiprocessing\n"
         "torch.multiprocessing.set_sharing_strategy(\"file_system\")\n"
         "def main():\n"
         "    seen = []\n"
         "    for step, (images, labels) in enumerate(loader):\n"
         "        loss = model(images)\n"
         "        again = images\n"
         "        " +
         body +
         "\n"
         "        dist.all_reduce(loss)\n";
}

model::Fact kept(std::int64_t count, double time, const std::string& oldest = "/dev/shm/torch_1") {
  return {.rank = 1,
          .pid = pid_of(1),
          .kind = "shm-kept",
          .fields = {{"count", count},
                     {"bytes", count * 1024},
                     {"moments", std::int64_t{20}},
                     {"oldest", oldest},
                     {"oldest_seconds", 30.0},
                     {"time", time},
                     {"mappings", count + 1000},
                     {"mappings_limit", std::int64_t{65530}},
                     {"bytes_free", std::int64_t{1} << 40}}};
}

/// Rank 1 had `before` segments and has `now` two seconds later.
Findings told(std::int64_t before, std::int64_t now, const std::string& body,
              const std::string& oldest = "/dev/shm/torch_1") {
  model::JobModel job = tests::job()
                            .ranks(2)
                            .source("/srv/train.py", script(body))
                            .stack(kAll, "py:main@/srv/train.py:9")
                            .progress(model::Progress::kMoving)
                            .build();
  job.facts = {kept(now, 102, oldest)};
  model::add_growth({kept(before, 100)}, job.facts);
  return asked("shm-leaked", job);
}

TEST(KeptBatches, AreALeakThatNamesItsLineAndItsStrategy) {
  const auto findings = told(400, 440, "seen.append((images, labels))");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_NE(findings[0].summary.find("keeps 440 shared memory segments"), std::string::npos);
  EXPECT_NE(findings[0].summary.find("20.0 more per second"), std::string::npos);
  EXPECT_NE(findings[0].summary.find("vm.max_map_count is reached in about 53 min"),
            std::string::npos)
      << findings[0].summary;
  ASSERT_EQ(findings[0].locations.size(), 2U);
  EXPECT_EQ(findings[0].locations[0].line, 8);
  EXPECT_EQ(findings[0].locations[1].line, 2);
}

TEST(KeptBatches, AreFoundBehindOtherNamesAndInOtherContainers) {
  for (const char* body : {"seen.append(again)", "self.cache[step] = images", "seen += [labels]",
                           "history.extend([images.detach()])", "seen.add(again.view(-1))"}) {
    const auto findings = told(400, 440, body);
    ASSERT_EQ(findings.size(), 1U) << body;
    EXPECT_EQ(findings[0].locations.at(0).line, 8) << body;
    EXPECT_NE(findings[0].locations.at(0).note.find("keeps each batch"), std::string::npos);
  }
}

TEST(KeptBatches, ACopyIsNotWhatKeepsThem) {
  for (const char* body :
       {"seen.append(images.clone())", "seen.append(loss_of(images))", "seen.append(step_of[0])",
        "seen.append(labels.tolist())", "total = total + images.sum()"}) {
    const auto findings = told(400, 440, body);
    ASSERT_EQ(findings.size(), 1U) << body;
    EXPECT_EQ(findings[0].locations.at(0).note.find("keeps each batch"), std::string::npos) << body;
  }
}

TEST(KeptBatches, OfWhichTheOldAreLetGoAreNoLeak) {
  EXPECT_TRUE(told(400, 440, "seen.append(images)", "/dev/shm/torch_9").empty());
}

TEST(KeptBatches, ThatDoNotGrowInNumberAreNoLeak) {
  EXPECT_TRUE(told(400, 400, "seen.append(images)").empty());
  EXPECT_TRUE(told(400, 380, "seen.append(images)").empty());
}

TEST(KeptBatches, SeenOnceAreNoLeak) {
  model::JobModel job = tests::job().ranks(2).stack(kAll, "py:main@/srv/train.py:9").build();
  job.facts = {kept(400, 100)};
  EXPECT_TRUE(asked("shm-leaked", job).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
