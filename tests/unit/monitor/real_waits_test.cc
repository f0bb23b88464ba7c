// SPDX-License-Identifier: Apache-2.0
// Edges of the wait-for graph that need an interpreter, on real processes: the GIL, an import lock,
// a join. Those of the kernel (pipe, socket, FIFO, mutex, file lock, child) are in
// tests/unit/sources.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collector/graph/examination.h"
#include "collector/model/questions.h"
#include "collector/monitor/observe.h"
#include "tests/support/child_process.h"
#include "tests/support/temp_dir.h"

namespace ddpdoctor::monitor {
namespace {

std::string python() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody here calls setenv
  const char* told = std::getenv("DDPDOCTOR_TEST_PYTHON");
  for (const std::string& each :
       {std::string(told == nullptr ? "" : told), std::string("python3")}) {
    if (!each.empty() && test::output_of({each, "-c", "print(1)"})) {
      return each;
    }
  }
  return {};
}

/// A Python program that has printed READY.
class Program {
 public:
  explicit Program(const std::string& text)
      : child_({python(), "-u", folder_.write("job.py", text)}) {
    EXPECT_EQ(child_.line(), "READY");
  }

  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  Program(Program&&) = delete;
  Program& operator=(Program&&) = delete;
  ~Program() {
    ::kill(child_.pid(), SIGKILL);  // it would not end on its own
  }

  /// What its main thread waits for, once it is in a wait of that kind.
  [[nodiscard]] std::optional<model::WaitsOn> waits(std::string_view kind) {
    std::optional<model::WaitsOn> last;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < end) {
      job_ = observe(child_.pid(), {.samples = 1, .interval = 0}).value_or(model::JobModel{});
      const model::Process* process = model::process(job_, child_.pid());
      const model::Thread* main = process == nullptr ? nullptr : model::main_thread(*process);
      last = main == nullptr ? std::nullopt : main->waits_on;
      if (last && last->kind == kind && (kind != "gil" || !last->target.empty())) {
        return last;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return last;
  }
  /// The other thread with that Python name or comm.
  [[nodiscard]] std::string other_thread() const {
    const model::Process* process = model::process(job_, child_.pid());
    for (const model::Thread& thread : process->threads) {
      if (thread.tid != process->pid) {
        return fmt::format("thread:{}", thread.tid);
      }
    }
    return {};
  }

 private:
  tests::TempDir folder_;
  test::ChildProcess child_;
  model::JobModel job_;
};

TEST(RealWaits, AThreadWithoutTheGilWaitsForTheOneThatSleepsWithIt) {
  if (python().empty()) {
    GTEST_SKIP() << "no python3";
  }
  Program program(R"(
import ctypes, threading
def hold():
    print("READY", flush=True)
    ctypes.PyDLL(None).pause()  # a PyDLL call keeps the GIL
threading.Thread(target=hold, daemon=True).start()
while True:
    pass
)");
  const auto found = program.waits("gil");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, "gil") << found->detail;
  EXPECT_EQ(found->target, program.other_thread());
}

TEST(RealWaits, AnImportWaitsForTheThreadThatIsImportingIt) {
  if (python().empty()) {
    GTEST_SKIP() << "no python3";
  }
  Program program(R"(
import os, sys, threading
folder = os.path.dirname(__file__)
with open(os.path.join(folder, "slow_module.py"), "w") as file:
    file.write("import builtins\nbuiltins.started.set()\nbuiltins.never.wait()\n")
import builtins
builtins.started, builtins.never = threading.Event(), threading.Event()
sys.path.insert(0, folder)
threading.Thread(target=lambda: __import__("slow_module"), daemon=True).start()
builtins.started.wait()
print("READY", flush=True)
import slow_module
)");
  const auto found = program.waits("import-lock");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, "import-lock") << found->detail;
  EXPECT_NE(found->detail.find("slow_module"), std::string::npos) << found->detail;
}

TEST(RealWaits, AJoinWaitsForTheThread) {
  if (python().empty()) {
    GTEST_SKIP() << "no python3";
  }
  Program program(R"(
import threading
never = threading.Event()
thread = threading.Thread(target=never.wait, daemon=True)
thread.start()
print("READY", flush=True)
thread.join()
)");
  const auto found = program.waits("thread");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->target, program.other_thread()) << found->kind << " " << found->detail;
}

}  // namespace
}  // namespace ddpdoctor::monitor
