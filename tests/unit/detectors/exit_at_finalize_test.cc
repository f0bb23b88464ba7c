// SPDX-License-Identifier: Apache-2.0
// exit-hang while the interpreter finalizes: it frees its modules, its last thread waits for a
// lock, an exit handler waits for a child.
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "exit-hang";
const std::string kFinalizes =
    "native:_PyModule_ClearDict@python3.12 | native:Py_FinalizeEx@python3.12 | "
    "native:Py_RunMain@python3.12";

TEST(ExitAtFinalize, ADestructorOfAGroupIsNotAnExitFunction) {
  const std::string aborts =
      "native:pthread_join@libc.so.6 | native:commFree@libnccl.so.2 | "
      "native:ncclCommAbort@libnccl.so.2 | "
      "native:c10d::ProcessGroupNCCL::~ProcessGroupNCCL()@libtorch_cuda.so | ";
  const auto findings = asked(kKind, job().ranks(1).stack(0, aborts + kFinalizes).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("destructor of ProcessGroupNCCL"), std::string::npos)
      << findings[0].summary;
  EXPECT_EQ(findings[0].summary.find("atexit"), std::string::npos);
  EXPECT_NE(findings[0].fix.find("destroy_process_group"), std::string::npos);
}

TEST(ExitAtFinalize, PythonCodeRunsWhileModulesAreFreed) {
  const auto told = [](const std::string& outer) {
    return asked(kKind, job()
                            .ranks(1)
                            .stack(0,
                                   "native:sem_wait@libc.so.6 | "
                                   "py:acquire@/usr/lib/python3.12/threading.py:1 | "
                                   "py:on_free@/srv/stage.py:31 | " +
                                       outer)
                            .build());
  };
  const auto findings = told(kFinalizes);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("frees its modules"), std::string::npos);
  const auto handler = told("native:atexit_callfuncs@python3.12 | native:Py_FinalizeEx@python3.12");
  ASSERT_EQ(handler.size(), 1U);
  EXPECT_NE(handler[0].summary.find("atexit"), std::string::npos);
}

TEST(ExitAtFinalize, NoThreadIsLeftToReleaseTheLock) {
  const std::string lock =
      "native:sem_clockwait_np@libc.so.7 | native:PyThread_acquire_lock_timed@python3.10 | ";
  const std::string wait = lock + "native:PyThread_acquire_lock@python3.10 | ";
  const auto told = [](const std::string& stack, const std::string& second = {}) {
    auto one = job().ranks(1).stack(0, stack);
    if (!second.empty()) {
      one.thread(0, {.stack = second});
    }
    return asked(kKind, one.build());
  };
  const auto findings = told(wait + "native:local_clear@python3.10 | " + kFinalizes);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("waits for a lock in local_clear"), std::string::npos)
      << findings[0].summary;
  // Another thread may release it; the wait has a limit; the program still runs.
  EXPECT_TRUE(told(wait + "native:local_clear@python3.10 | " + kFinalizes,
                   "native:poll@libc.so.7 | native:serve@libapp.so")
                  .empty());
  EXPECT_TRUE(told(lock + "native:local_clear@python3.10 | " + kFinalizes).empty());
  EXPECT_TRUE(told(wait + "native:local_clear@python3.10 | native:Py_RunMain@python3.10").empty());
}

TEST(ExitAtFinalize, AnExitHandlerWaitsForAChild) {
  const auto told = [](const std::string& line, const std::string& outer = {}) {
    auto story = job()
                     .ranks(1)
                     .source("/srv/pool.py", "def stop(self):\n    " + line + "\n")
                     .stack(0, "py:stop@/srv/pool.py:2" + outer)
                     .build();
    story.observations.front().processes.front().python_version = "3.11.2";
    return asked(kKind, story);
  };
  const auto findings = told("os.waitpid(self.pid, 0)");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("a child process (os.waitpid)"), std::string::npos);
  EXPECT_TRUE(told("self.queue.get()").empty());
  EXPECT_TRUE(told("os.waitpid(self.pid, 0)", " | py:<module>@/srv/train.py:9").empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
