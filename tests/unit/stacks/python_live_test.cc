// SPDX-License-Identifier: Apache-2.0
// The whole reader on real interpreters: python_shapes.py prints what Python itself sees of its
// blocked threads, and we must see exactly that. One test per version, for every installation
// found.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include "base/text.h"
#include "collector/stacks/capture.h"
#include "collector/stacks/python/reader.h"
#include "collector/stacks/target/live_target.h"
#include "tests/support/child_process.h"
#include "tests/support/places.h"

namespace ddpdoctor::stacks {
namespace {

using test::ChildProcess;
using test::PythonInstallation;

/// What the program printed about itself.
struct Told {
  pid_t pid = 0;
  std::map<pid_t, std::string> names;
  std::map<pid_t, std::vector<std::string>>
      frames;  // "qualname file line column end_line end_column", tab-separated
  std::map<std::string, std::string> values;
};

Told parse(const std::vector<std::string>& lines, pid_t pid) {
  Told told{.pid = pid, .names = {}, .frames = {}, .values = {}};
  pid_t thread = 0;
  for (const std::string& line : lines) {
    const auto words = base::split(line, '\t');
    if (words[0] == "child") {
      told.pid = std::atoi(std::string(words[1]).c_str());
    } else if (words[0] == "thread") {
      thread = std::atoi(std::string(words[1]).c_str());
      told.names[thread] = words[2];
    } else if (words[0] == "frame") {
      told.frames[thread].push_back(line.substr(6));
    } else if (words[0] == "value") {
      told.values[std::string(words[1])] = words[2];
    }
  }
  return told;
}

const std::vector<PythonInstallation>& installations_of(int minor) {
  static std::map<int, std::vector<PythonInstallation>> known;
  const auto found = known.find(minor);
  return found != known.end()
             ? found->second
             : known.emplace(minor, test::python_installations(minor)).first->second;
}

/// A program of tests/support and our reader on it.
class Observed {
 public:
  Observed(const PythonInstallation& python, const std::vector<std::string>& arguments)
      : child_(command(python, arguments)) {
    const auto lines = child_.lines_until("ready");
    if (!lines) {
      problem = "it does not come up";
      return;
    }
    told = parse(*lines, child_.pid());
    if (!test::eventually([&] { return test::rests_in(told.pid, SYS_read); })) {
      problem = "it does not come to rest";
      return;
    }
    auto opened = LiveTarget::open(told.pid, files_);
    if (opened) {
      target_ = std::move(*opened);
      reader = open_python(*target_, problem);
    }
  }

  std::vector<std::string> frames_of(pid_t tid) {
    std::vector<std::string> seen;
    for (const PythonThreadState& state : reader->thread_states()) {
      if (state.inner_tid != tid) {
        continue;
      }
      for (const PythonFrame& frame : reader->decode(reader->read_stack(state.address))) {
        if (!frame.raw.shim) {
          const Frame& f = frame.frame;
          seen.push_back(fmt::format("{}\t{}\t{}\t{}\t{}\t{}", f.function, f.file, f.line, f.column,
                                     f.end_line, f.end_column));
        }
      }
    }
    return seen;
  }

  Told told;
  std::string problem;
  std::unique_ptr<PythonReader> reader;

 private:
  static std::vector<std::string> command(const PythonInstallation& python,
                                          const std::vector<std::string>& arguments) {
    std::vector<std::string> argv = {python.command,
                                     tests::source_file("tests/support/python_shapes.py")};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return argv;
  }

  ChildProcess child_;
  ElfCache files_;
  std::unique_ptr<LiveTarget> target_;
};

class Interpreters : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (installations_of(GetParam()).empty()) {
      GTEST_SKIP() << "no CPython 3." << GetParam() << " on this machine";
    }
  }
};

void expect_same_frames(Observed& seen) {
  EXPECT_GE(seen.told.frames.size(), 20U);
  for (const auto& [tid, frames] : seen.told.frames) {
    EXPECT_EQ(seen.frames_of(tid), frames) << seen.told.names[tid];
  }
}

TEST_P(Interpreters, FramesAreWhatPythonItselfSees) {
  for (const PythonInstallation& python : installations_of(GetParam())) {
    SCOPED_TRACE(python.command);
    Observed seen(python, {});
    ASSERT_NE(seen.reader, nullptr) << seen.problem;
    EXPECT_EQ(seen.reader->version(), fmt::format("3.{}", GetParam()));
    expect_same_frames(seen);
  }
}

TEST_P(Interpreters, FramesOfAForkedChildAreRight) {
  for (const PythonInstallation& python : installations_of(GetParam())) {
    SCOPED_TRACE(python.command);
    Observed seen(python, {"fork"});
    ASSERT_NE(seen.reader, nullptr) << seen.problem;
    expect_same_frames(seen);
  }
}

TEST_P(Interpreters, ValuesAreSpelledAsPythonSpellsThem) {
  for (const PythonInstallation& python : installations_of(GetParam())) {
    SCOPED_TRACE(python.command);
    Observed seen(python, {});
    ASSERT_NE(seen.reader, nullptr) << seen.problem;
    PythonObjects& objects = seen.reader->objects();
    const auto main = objects.module("__main__");
    ASSERT_TRUE(main.has_value());
    const auto values = objects.item(*main, "values");
    ASSERT_TRUE(values.has_value());
    EXPECT_GE(seen.told.values.size(), 30U);
    const ReprLimits limits{.text = 120, .items = 200, .depth = 5};
    for (const auto& [name, text] : seen.told.values) {
      const auto value = objects.item(*values, name);
      ASSERT_TRUE(value.has_value()) << name;
      EXPECT_EQ(objects.repr(*value, limits), text) << name;
    }
    const auto large = objects.item(*main, "large");
    ASSERT_TRUE(large.has_value());
    EXPECT_EQ(objects.items(*large).size(), 1000U);
    EXPECT_EQ(objects.integer(objects.item(*large, "777").value_or(0)), 777);
    EXPECT_EQ(objects.item(*large, "1000"), std::nullopt);
  }
}

TEST_P(Interpreters, AttributesAreFoundInEveryKindOfInstance) {
  for (const PythonInstallation& python : installations_of(GetParam())) {
    SCOPED_TRACE(python.command);
    Observed seen(python, {});
    ASSERT_NE(seen.reader, nullptr) << seen.problem;
    PythonObjects& objects = seen.reader->objects();
    const auto main = objects.module("__main__");
    ASSERT_TRUE(main.has_value());
    const auto attribute = [&](std::string_view object, std::string_view name) {
      const auto found = objects.attribute(objects.item(*main, object).value_or(0), name);
      return found ? objects.repr(*found) : "absent";
    };
    EXPECT_EQ(attribute("plain", "first"), "1");
    EXPECT_EQ(attribute("plain", "second"), "'two'");
    EXPECT_EQ(attribute("plain", "third"), "absent");
    EXPECT_EQ(attribute("dict_taken", "second"), "'two'");
    EXPECT_EQ(attribute("dict_taken", "third"), "3.5");
    EXPECT_EQ(attribute("late", "added_later"), "(1, 2)");
    EXPECT_EQ(attribute("late", "a39"), "39");
  }
}

TEST_P(Interpreters, ThreadsHaveTheirNamesAndTheEnvironmentShowsTheJobOnly) {
  for (const PythonInstallation& python : installations_of(GetParam())) {
    SCOPED_TRACE(python.command);
    Observed seen(python, {});
    ASSERT_NE(seen.reader, nullptr) << seen.problem;
    std::map<pid_t, std::string> names;
    for (const auto& [tid, name] : seen.reader->thread_names()) {
      names[tid] = name;
    }
    EXPECT_EQ(names[seen.told.pid], "MainThread");
    names.erase(seen.told.pid);
    EXPECT_EQ(names, seen.told.names);
    const auto environment = seen.reader->environment();
    EXPECT_EQ(environment.at("MASTER_PORT"), "12345");
    EXPECT_EQ(environment.at("NCCL_DEBUG"), "INFO");
    EXPECT_FALSE(environment.contains("A_SECRET"));
    EXPECT_FALSE(environment.contains("PATH"));
  }
}

TEST_P(Interpreters, NobodyHoldsTheLockWhenAllAreBlocked) {
  for (const PythonInstallation& python : installations_of(GetParam())) {
    SCOPED_TRACE(python.command);
    Observed seen(python, {});
    ASSERT_NE(seen.reader, nullptr) << seen.problem;
    EXPECT_EQ(seen.reader->gil_holder(), std::nullopt);
  }
}

TEST_P(Interpreters, TheSpinningThreadHoldsTheLock) {
  for (const PythonInstallation& python : installations_of(GetParam())) {
    SCOPED_TRACE(python.command);
    ChildProcess child({python.command, tests::source_file("tests/support/python_spin.py")});
    const pid_t spinner = std::atoi(child.line().value_or("0").c_str());
    ElfCache files;
    auto target = LiveTarget::open(child.pid(), files);
    ASSERT_TRUE(target.has_value());
    std::string problem;
    const auto reader = open_python(**target, problem);
    ASSERT_NE(reader, nullptr) << problem;
    // The main thread takes the lock once more before it enters read().
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    std::optional<pid_t> holder;
    while (holder != spinner && std::chrono::steady_clock::now() < deadline) {
      (*target)->memory().forget();
      holder = reader->gil_holder();
    }
    EXPECT_EQ(holder, spinner);
  }
}

TEST_P(Interpreters, LocalsAreShownForWaitsOnly) {
  for (const PythonInstallation& python : installations_of(GetParam())) {
    SCOPED_TRACE(python.command);
    Observed seen(python, {});
    ASSERT_NE(seen.reader, nullptr) << seen.problem;
    bool waited = false;
    for (const PythonThreadState& state : seen.reader->thread_states()) {
      for (const PythonFrame& one : seen.reader->decode(seen.reader->read_stack(state.address))) {
        const Frame& frame = one.frame;
        if (frame.file.ends_with("python_shapes.py")) {
          EXPECT_TRUE(frame.locals.empty()) << frame.function;
        }
        if (frame.function.ends_with("wait") && frame.file.ends_with("threading.py")) {
          waited = true;
          EXPECT_NE(std::ranges::find(frame.locals,
                                      std::pair<std::string, std::string>("timeout", "None")),
                    frame.locals.end());
        }
      }
    }
    EXPECT_TRUE(waited);
  }
}

TEST_P(Interpreters, EveryLoopIsKnownByAnAddressOnTheStackFrom310On) {
  for (const PythonInstallation& python : installations_of(GetParam())) {
    SCOPED_TRACE(python.command);
    Observed seen(python, {});
    ASSERT_NE(seen.reader, nullptr) << seen.problem;
    for (const PythonThreadState& state : seen.reader->thread_states()) {
      RemoteAddress inner = 0;
      for (const RawPythonFrame& frame : seen.reader->read_stack(state.address)) {
        const RemoteAddress loop = frame.shim ? frame.address : frame.loop;
        if (GetParam() < 10) {
          EXPECT_EQ(loop, 0U);
        } else if ((frame.entry || frame.shim)) {
          EXPECT_NE(loop, 0U);
          // 3.15 ends each thread with a sentinel in the thread state, at any address.
          EXPECT_TRUE(loop > inner || GetParam() >= 15) << "the caller's loop lies further up";
          inner = loop;
        }
      }
    }
  }
}

TEST_P(Interpreters, ASubinterpretersFramesStandInsideItsCallers) {
  for (const PythonInstallation& python : installations_of(GetParam())) {
    SCOPED_TRACE(python.command);
    ChildProcess child(
        {python.command, tests::source_file("tests/support/python_subinterpreter.py")}, true);
    ASSERT_TRUE(child.lines_until("ready").has_value());
    ASSERT_TRUE(child.rests_in(SYS_read));
    ElfCache files;
    auto target = LiveTarget::open(child.pid(), files);
    ASSERT_TRUE(target.has_value());
    std::string problem;
    const auto reader = open_python(**target, problem);
    ASSERT_NE(reader, nullptr) << problem;
    const auto states = reader->thread_states();
    ASSERT_EQ(states.size(), 1U);
    EXPECT_EQ(states[0].inner_tid, child.pid());
    std::vector<std::string> functions;
    for (const PythonFrame& one : reader->decode(reader->read_stack(states[0].address))) {
      if (!one.raw.shim) {
        functions.push_back(one.frame.function);
      }
    }
    EXPECT_EQ(functions, (std::vector<std::string>{"inner", "<module>", "enter", "<module>"}));
  }
}

/// The Python frames of a merged stack, in the program's format.
std::vector<std::string> python_part(const ThreadStack& thread) {
  std::vector<std::string> seen;
  for (const Frame& f : thread.frames) {
    if (f.language == Language::kPython) {
      seen.push_back(fmt::format("{}\t{}\t{}\t{}\t{}\t{}", f.function, f.file, f.line, f.column,
                                 f.end_line, f.end_column));
    }
  }
  return seen;
}

TEST_P(Interpreters, PythonAndNativeFramesMergeIntoOneStack) {
  for (const PythonInstallation& python : installations_of(GetParam())) {
    SCOPED_TRACE(python.command);
    Observed seen(python, {});
    const std::vector<pid_t> pids = {seen.told.pid};
    const auto captured = capture(pids, {});
    ASSERT_EQ(captured.size(), 1U);
    std::size_t compared = 0;
    for (const ThreadStack& thread : captured[0].threads) {
      EXPECT_EQ(thread.problem, "") << thread.python_name;
      if (!seen.told.frames.contains(thread.tid)) {
        continue;
      }
      ++compared;
      EXPECT_EQ(python_part(thread), seen.told.frames[thread.tid]) << thread.python_name;
      const auto last_python = std::ranges::find_if(
          thread.frames.rbegin(), thread.frames.rend(),
          [](const Frame& frame) { return frame.language == Language::kPython; });
      // Python runs above the thread's start function and calls into libc: native frames on both
      // sides.
      ASSERT_NE(last_python, thread.frames.rend());
      EXPECT_NE(last_python, thread.frames.rbegin());
      EXPECT_EQ(thread.frames.front().language, Language::kNative);
      EXPECT_TRUE(std::ranges::none_of(thread.frames, [](const Frame& frame) {
        return frame.function.starts_with("_PyEval_EvalFrameDefault");
      })) << thread.python_name;
    }
    EXPECT_EQ(compared, seen.told.frames.size());
  }
}

TEST(OpenPython, AProcessThatIsNoPythonIsNoProblem) {
  ChildProcess child({"sh", "-c", "echo ready; read line"});
  ASSERT_TRUE(child.lines_until("ready").has_value());
  ElfCache files;
  auto target = LiveTarget::open(child.pid(), files);
  ASSERT_TRUE(target.has_value());
  std::string problem = "left over";
  EXPECT_EQ(open_python(**target, problem), nullptr);
  EXPECT_EQ(problem, "");
}

INSTANTIATE_TEST_SUITE_P(Python3, Interpreters, testing::Range(8, 16));

}  // namespace
}  // namespace ddpdoctor::stacks
