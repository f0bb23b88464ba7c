// SPDX-License-Identifier: Apache-2.0
// Exceptions being handled in real interpreters, for every installation found.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include "collector/stacks/python/exception.h"
#include "collector/stacks/python/reader.h"
#include "collector/stacks/target/live_target.h"
#include "tests/support/child_process.h"
#include "tests/support/places.h"

namespace ddpdoctor::stacks {
namespace {

using test::PythonInstallation;

/// tests/support/python_exceptions.py in one of its modes, and our reader on it.
class Standing {
 public:
  Standing(const PythonInstallation& python, const std::string& mood)
      : child_({python.command, tests::source_file("tests/support/python_exceptions.py"), mood},
               true) {
    if (!child_.lines_until("ready") || !child_.rests_in(SYS_read)) {
      problem = "it does not come to rest";
      return;
    }
    auto opened = LiveTarget::open(child_.pid(), files_);
    if (opened) {
      target_ = std::move(*opened);
      reader = open_python(*target_, problem);
    }
  }

  /// The exception that the main thread is handling.
  std::optional<RaisedException> handled() {
    for (const PythonThreadState& state : reader->thread_states()) {
      if (state.inner_tid == child_.pid()) {
        return reader->decode_exception(reader->handled_exception(state.address));
      }
    }
    return std::nullopt;
  }

  std::string problem;
  std::unique_ptr<PythonReader> reader;

 private:
  test::ChildProcess child_;
  ElfCache files_;
  std::unique_ptr<LiveTarget> target_;
};

void expect_bad_sample(const std::optional<RaisedException>& seen, const std::string& handler) {
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(seen->type, "BadSample");
  EXPECT_EQ(seen->text, "empty row");
  ASSERT_GE(seen->places.size(), 2U);
  EXPECT_EQ(seen->places.front().function, "collate");
  EXPECT_EQ(seen->places.front().line, 14);
  EXPECT_EQ(seen->places.back().function, handler);
}

class Exceptions : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    installations = test::python_installations(GetParam());
    if (installations.empty()) {
      GTEST_SKIP() << "no CPython 3." << GetParam() << " on this machine";
    }
  }

  std::vector<PythonInstallation> installations;
};

TEST_P(Exceptions, AreKnownInExceptAndFinallyBlocks) {
  for (const PythonInstallation& python : installations) {
    SCOPED_TRACE(python.command);
    for (const std::string mood : {"handled", "cleanup"}) {
      Standing seen(python, mood);
      ASSERT_NE(seen.reader, nullptr) << seen.problem;
      expect_bad_sample(seen.handled(), mood);
    }
  }
}

TEST_P(Exceptions, AreKnownBehindAGeneratorThatRunsInTheHandler) {
  for (const PythonInstallation& python : installations) {
    SCOPED_TRACE(python.command);
    Standing seen(python, "generator");
    ASSERT_NE(seen.reader, nullptr) << seen.problem;
    const auto handled = seen.handled();
    ASSERT_TRUE(handled.has_value());
    EXPECT_EQ(handled->type, "FileNotFoundError");
    EXPECT_EQ(handled->text, "[Errno 2] No such file or directory");
  }
}

TEST_P(Exceptions, ThatWereDealtWithAreGone) {
  for (const PythonInstallation& python : installations) {
    SCOPED_TRACE(python.command);
    Standing seen(python, "none");
    ASSERT_NE(seen.reader, nullptr) << seen.problem;
    EXPECT_FALSE(seen.handled().has_value());
    EXPECT_EQ(seen.reader->printed_exception(), 0U);
  }
}

TEST_P(Exceptions, ThatEndedTheProgramAreKnownUntilItIsGone) {
  for (const PythonInstallation& python : installations) {
    SCOPED_TRACE(python.command);
    Standing seen(python, "printed");
    ASSERT_NE(seen.reader, nullptr) << seen.problem;
    expect_bad_sample(seen.reader->decode_exception(seen.reader->printed_exception()), "<module>");
  }
}

INSTANTIATE_TEST_SUITE_P(Python3, Exceptions, testing::Range(8, 15));

}  // namespace
}  // namespace ddpdoctor::stacks
