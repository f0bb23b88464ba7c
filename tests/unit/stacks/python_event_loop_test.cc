// SPDX-License-Identifier: Apache-2.0
// What the tasks of asyncio wait for in real interpreters, for every installation found.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include "collector/stacks/python/event_loop.h"
#include "collector/stacks/python/reader.h"
#include "collector/stacks/target/live_target.h"
#include "tests/support/child_process.h"
#include "tests/support/places.h"
#include "tests/support/system_calls.h"

namespace ddpdoctor::stacks {
namespace {

using test::PythonInstallation;

/// tests/support/python_event_loop.py in one of its modes, and our reader on it.
class Looping {
 public:
  Looping(const PythonInstallation& python, const std::string& mood)
      : child_({python.command, tests::source_file("tests/support/python_event_loop.py"), mood},
               true) {
    // The loop prints "ready" and has nothing else to do, so it returns to its selector.
    if (!child_.lines_until("ready") || !child_.rests_in(test::kEpollWait)) {
      problem = "the loop does not come to rest";
      return;
    }
    auto opened = LiveTarget::open(child_.pid(), files_);
    if (opened) {
      target_ = std::move(*opened);
      reader = open_python(*target_, problem);
    }
  }

  /// Functions of the main task, innermost first.
  std::vector<std::string> awaiting() {
    std::vector<std::string> functions;
    for (const PythonThreadState& state : reader->thread_states()) {
      for (const Frame& frame : reader->awaiting(reader->read_stack(state.address))) {
        functions.push_back(frame.function);
      }
    }
    return functions;
  }

  std::string problem;
  std::unique_ptr<PythonReader> reader;

 private:
  test::ChildProcess child_;
  ElfCache files_;
  std::unique_ptr<LiveTarget> target_;
};

class EventLoops : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    installations = test::python_installations(GetParam());
    if (installations.empty()) {
      GTEST_SKIP() << "no CPython 3." << GetParam() << " on this machine";
    }
  }

  std::vector<PythonInstallation> installations;
};

TEST_P(EventLoops, TellTheCoroutinesThatTheMainTaskWaitsIn) {
  for (const PythonInstallation& python : installations) {
    SCOPED_TRACE(python.command);
    for (const std::string mood : {"generator", "task"}) {
      Looping seen(python, mood);
      ASSERT_NE(seen.reader, nullptr) << seen.problem;
      EXPECT_EQ(seen.awaiting(), (std::vector<std::string>{"never", "rows", "stand", mood}));
      EXPECT_EQ(seen.reader->lost_exception(), 0U);
    }
  }
}

TEST_P(EventLoops, KnowWhatATaskFailedWithUnseen) {
  for (const PythonInstallation& python : installations) {
    SCOPED_TRACE(python.command);
    Looping seen(python, "lost");
    ASSERT_NE(seen.reader, nullptr) << seen.problem;
    EXPECT_EQ(seen.awaiting(), (std::vector<std::string>{"never", "rows", "stand", "lost"}));
    const auto lost = seen.reader->decode_exception(seen.reader->lost_exception());
    ASSERT_TRUE(lost.has_value());
    EXPECT_EQ(lost->type, "LostSample");
    EXPECT_EQ(lost->places.front().function, "fail");
    EXPECT_EQ(lost->places.front().line, 30);
  }
}

TEST_P(EventLoops, ForgetAnExceptionThatWasAskedFor) {
  for (const PythonInstallation& python : installations) {
    SCOPED_TRACE(python.command);
    Looping seen(python, "asked");
    ASSERT_NE(seen.reader, nullptr) << seen.problem;
    EXPECT_EQ(seen.awaiting(), (std::vector<std::string>{"never", "rows", "stand", "asked"}));
    EXPECT_EQ(seen.reader->lost_exception(), 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Python3, EventLoops, testing::Range(8, 14));

}  // namespace
}  // namespace ddpdoctor::stacks
