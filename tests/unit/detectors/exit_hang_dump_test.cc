// SPDX-License-Identifier: Apache-2.0
#include "collector/model/questions.h"
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "exit-hang";

TEST(ExitHang, AFunctionThatNoProgramCalledRunsAtExit) {
  const auto dumped = [](const std::string& main, const std::string& other) {
    model::JobModel dump = job()
                               .ranks(2)
                               .exited(0, 0)
                               .stack(1, "py:stop_all@/srv/workers.py:45" + main)
                               .thread(1, {.stack = other})
                               .build();
    for (model::Process& process : dump.observations.back().processes) {
      for (model::Thread& thread : process.threads) {
        thread.capture = std::string(model::kDumpedFrom) + "py-spy";
        thread.name = &thread == process.threads.data() ? "MainThread" : "QueueFeederThread";
      }
    }
    return asked(kKind, dump);
  };
  const std::string whole =
      "py:_feed@/usr/lib/python3.11/multiprocessing/queues.py:231 | "
      "py:_bootstrap@/usr/lib/python3.11/threading.py:995";
  const Findings findings = dumped("", whole);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("which Python called at exit"), std::string::npos);
  EXPECT_TRUE(dumped(" | py:<module>@/srv/train.py:9", whole).empty());
  EXPECT_TRUE(dumped("", "py:_feed@/usr/lib/python3.11/multiprocessing/queues.py:231").empty());
}

TEST(ExitHang, AProgramThatEndsItsPoolHasNotFinished) {
  const std::string pool =
      "py:join@/usr/lib/python3.11/threading.py:1096 | "
      "py:shutdown@/usr/lib/python3.11/concurrent/futures/process.py:780";
  const auto told = [&pool](const std::string& outer) {
    return asked(kKind, job().ranks(2).exited(0, 0).stack(1, pool + outer).build());
  };
  EXPECT_EQ(told("").size(), 1U);
  EXPECT_TRUE(told(" | py:run@/srv/train.py:9 | py:<module>@/srv/train.py:20").empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
