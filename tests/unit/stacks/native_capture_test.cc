// SPDX-License-Identifier: Apache-2.0
// The capture methods, on processes in every state that an observer must handle
// (tests/support/stack_programs/look_target.cc).
#include <algorithm>
#include <charconv>
#include <csignal>
#include <functional>
#include <thread>

#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "collector/stacks/capture.h"
#include "collector/stacks/target/maps_table.h"
#include "collector/stacks/target/proc_tasks.h"
#include "tests/support/child_process.h"
#include "tests/support/places.h"
#include "tests/support/system_calls.h"

namespace ddpdoctor::stacks {
namespace {

using std::chrono::steady_clock;

const CaptureOptions kNoStop{.allow_stop = false, .native = true, .torch_state = false};
const CaptureOptions kMayStop{.allow_stop = true, .native = true, .torch_state = false};

/// A scene of look_target, with its output.
class Scene {
 public:
  explicit Scene(const std::string& name)
      : child_({tests::built_file("stack_programs/look_target"), name}) {}

  [[nodiscard]] pid_t pid() const {
    return child_.pid();
  }

  /// The number on the next line that begins with `word`.
  pid_t number(const std::string& word) {
    while (const auto line = child_.line()) {
      if (line->starts_with(word + " ")) {
        return std::stoi(line->substr(line->rfind(' ')));
      }
    }
    ADD_FAILURE() << "the scene never said " << word;
    return 0;
  }

  std::optional<std::string> line() {
    return child_.line();
  }

 private:
  test::ChildProcess child_;
};

void eventually(const std::function<bool()>& condition) {
  const auto until = steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    ASSERT_LT(steady_clock::now(), until) << "the condition never came true";
    std::this_thread::yield();
  }
}

char state_of(pid_t pid, pid_t tid) {
  const auto tasks = ProcTasks::open(pid);
  return tasks ? tasks->name(tid).value_or(ThreadName{}).state : 'X';
}

ProcessStacks look(pid_t pid, const CaptureOptions& options) {
  auto stacks = capture(std::span(&pid, 1), options);
  return std::move(stacks.at(0));
}

const ThreadStack* thread(const ProcessStacks& stacks, pid_t tid) {
  const auto found = std::find_if(stacks.threads.begin(), stacks.threads.end(),
                                  [tid](const ThreadStack& one) { return one.tid == tid; });
  return found == stacks.threads.end() ? nullptr : &*found;
}

bool has_frame(const ThreadStack& stack, std::string_view part) {
  return std::any_of(stack.frames.begin(), stack.frames.end(), [part](const Frame& frame) {
    return frame.function.find(part) != std::string::npos;
  });
}

TEST(Capture, StopsAThreadThatRunsAndOnlyThat) {
  Scene scene("spin");
  const pid_t spinner = scene.number("spinner");
  eventually([&] {
    return state_of(scene.pid(), spinner) == 'R' && state_of(scene.pid(), scene.pid()) == 'S';
  });
  const ProcessStacks stacks = look(scene.pid(), kMayStop);
  const ThreadStack* const spinning = thread(stacks, spinner);
  ASSERT_NE(spinning, nullptr);
  EXPECT_EQ(spinning->method, CaptureMethod::kStopped) << spinning->problem;
  EXPECT_TRUE(spinning->complete) << spinning->problem;
  EXPECT_TRUE(has_frame(*spinning, "spin_for_ever")) << spinning->problem;
  EXPECT_GT(spinning->stopped_ms, 0);
  EXPECT_EQ(stacks.longest_stop_ms, spinning->stopped_ms);
  const ThreadStack* const main = thread(stacks, scene.pid());
  ASSERT_NE(main, nullptr);
  EXPECT_EQ(main->method, CaptureMethod::kNoStop);
  EXPECT_TRUE(has_frame(*main, "main"));
  EXPECT_EQ(main->syscall->number, SYS_read);
  EXPECT_NE(state_of(scene.pid(), spinner), 't') << "still stopped";
}

TEST(Capture, SaysThatARunningThreadMayNotBeStopped) {
  Scene scene("spin");
  const pid_t spinner = scene.number("spinner");
  const ProcessStacks stacks = look(scene.pid(), kNoStop);
  const ThreadStack* const spinning = thread(stacks, spinner);
  ASSERT_NE(spinning, nullptr);
  EXPECT_EQ(spinning->method, CaptureMethod::kNone);
  EXPECT_TRUE(spinning->frames.empty());
  EXPECT_NE(spinning->problem.find("--no-stop"), std::string::npos) << spinning->problem;
}

TEST(Capture, NamesTheTracerOfAThreadItCannotStop) {
  Scene scene("spin");
  const pid_t spinner = scene.number("spinner");
  bool traced = false;
  std::jthread([&] {
    traced = ::ptrace(PTRACE_SEIZE, spinner, 0, 0) == 0;
    const ProcessStacks stacks = [&] {
      ProcessStacks answer;
      std::jthread([&] { answer = look(scene.pid(), kMayStop); }).join();
      return answer;
    }();
    const ThreadStack* const spinning = thread(stacks, spinner);
    ASSERT_NE(spinning, nullptr);
    EXPECT_NE(spinning->problem.find(std::to_string(::getpid())), std::string::npos)
        << spinning->problem;
    EXPECT_NE(spinning->problem.find("traces it"), std::string::npos) << spinning->problem;
  }).join();
  EXPECT_TRUE(traced);
}

TEST(Capture, InterruptsNoWait) {
  Scene scene("timed-waits");
  std::map<std::string, pid_t> tids;
  while (tids.size() < 2) {
    const auto line = scene.line();
    ASSERT_TRUE(line.has_value());
    if (line->find("_tid ") != std::string::npos) {
      tids[line->substr(0, line->find('_'))] = std::stoi(line->substr(line->rfind(' ')));
    }
  }
  // Both were seen inside their waits; a stop would have interrupted these.
  bool seen = false;
  eventually([&] {
    const ProcessStacks stacks = look(scene.pid(), kMayStop);
    const ThreadStack* const poller = thread(stacks, tids["epoll"]);
    const ThreadStack* const receiver = thread(stacks, tids["recv"]);
    seen = poller != nullptr && receiver != nullptr && poller->method == CaptureMethod::kNoStop &&
           receiver->method == CaptureMethod::kNoStop && poller->syscall && receiver->syscall &&
           poller->syscall->number == test::kEpollWait && receiver->syscall->number == SYS_recvfrom;
    return seen;
  });
  std::map<std::string, int> ends;
  while (ends["epoll_wait timeout"] == 0 || ends["recv timeout"] == 0) {
    const auto line = scene.line();
    ASSERT_TRUE(line.has_value());
    EXPECT_EQ(line->find("interrupted"), std::string::npos) << *line;
    ++ends[line->substr(0, line->rfind(' '))];
  }
}

TEST(Capture, KeepsTheMapsForOtherReaders) {
  MapsTable maps;
  pid_t gone = 0;
  {
    Scene scene("mutex");
    scene.number("owner");
    gone = scene.pid();
    CaptureOptions options = kNoStop;
    options.maps = &maps;
    capture(std::span(&gone, 1), options);
  }
  EXPECT_FALSE(Maps::of(gone) && !Maps::of(gone)->all().empty());
  EXPECT_FALSE(maps.of(gone).all().empty());
}

TEST(Capture, FindsTheOwnerOfAMutex) {
  Scene scene("mutex");
  const pid_t owner = scene.number("owner");
  const pid_t waiter = scene.number("waiter");
  eventually([&] { return state_of(scene.pid(), waiter) == 'S'; });
  const ProcessStacks stacks = look(scene.pid(), kNoStop);
  const ThreadStack* const waiting = thread(stacks, waiter);
  ASSERT_NE(waiting, nullptr);
  EXPECT_EQ(waiting->mutex_owner, owner) << waiting->problem;
  EXPECT_EQ(waiting->mutex_address, waiting->syscall->arguments[0]);
  EXPECT_FALSE(thread(stacks, owner)->mutex_address.has_value());
}

TEST(Capture, NamesAnOwnerThatStayedBehindInTheParent) {
  Scene scene("fork-with-held-lock");
  const pid_t owner = scene.number("owner");
  const pid_t child = scene.number("child");
  eventually([&] { return state_of(child, child) == 'S'; });
  const ProcessStacks stacks = look(child, kNoStop);
  ASSERT_EQ(stacks.threads.size(), 1U);
  EXPECT_EQ(stacks.threads[0].mutex_owner, owner) << stacks.threads[0].problem;
}

TEST(Capture, SaysThatAZombieHasEnded) {
  Scene scene("zombie");
  const pid_t child = scene.number("child");
  eventually([&] { return state_of(child, child) == 'Z'; });
  const ProcessStacks stacks = look(child, kMayStop);
  ASSERT_EQ(stacks.problems.size(), 1U);
  EXPECT_NE(stacks.problems[0].find("zombie"), std::string::npos) << stacks.problems[0];
  ASSERT_EQ(stacks.threads.size(), 1U);
  EXPECT_EQ(stacks.threads[0].state, 'Z');
}

TEST(Capture, ReadsAStoppedProcessAndLeavesItStopped) {
  Scene scene("stopped");
  const pid_t child = scene.number("child");
  eventually([&] { return state_of(child, child) == 'T'; });
  const ProcessStacks stacks = look(child, kMayStop);
  ASSERT_EQ(stacks.threads.size(), 1U);
  EXPECT_TRUE(stacks.threads[0].complete) << stacks.threads[0].problem;
  EXPECT_TRUE(has_frame(stacks.threads[0], "main"));
  EXPECT_EQ(stacks.threads[0].state, 'T');
  EXPECT_EQ(state_of(child, child), 'T');
}

TEST(Capture, SaysWhereAStackRunsThroughCodeMadeAtRunTime) {
  Scene scene("run-time-code");
  const pid_t tid = scene.number("jit_tid");
  eventually([&] { return state_of(scene.pid(), tid) == 'S'; });
  const ProcessStacks without = look(scene.pid(), kNoStop);
  const ThreadStack* const waiting = thread(without, tid);
  ASSERT_NE(waiting, nullptr);
  EXPECT_FALSE(waiting->frames.empty());
  EXPECT_NE(waiting->problem.find("code made at run time"), std::string::npos) << waiting->problem;
}

#ifdef __x86_64__
TEST(Capture, AStopForMoreFramesKeepsTheSystemCallInWhichTheThreadWaits) {
  Scene scene("frame-by-rbp");
  const pid_t tid = scene.number("reader");
  eventually([&] { return state_of(scene.pid(), tid) == 'S'; });
  const ProcessStacks stacks = look(scene.pid(), kMayStop);
  const ThreadStack* const waiting = thread(stacks, tid);
  ASSERT_NE(waiting, nullptr);
  ASSERT_EQ(waiting->method, CaptureMethod::kStopped);
  ASSERT_TRUE(waiting->syscall);
  EXPECT_EQ(waiting->syscall->number, SYS_read);
  EXPECT_TRUE(has_frame(*waiting, "read_below_alloca"));
  const auto count = [&]() -> std::uint64_t {
    const ProcessStacks again = look(scene.pid(), kMayStop);
    const ThreadStack* const one = thread(again, tid);
    return one != nullptr && one->method == CaptureMethod::kStopped ? one->run_count : 0;
  };
  eventually([&] {  // it runs for our stops only; on a busy machine it may be late for one
    const std::uint64_t before = count();
    return before != 0 && count() == before;
  });
}
#endif

TEST(Capture, OfNoProcessSaysSo) {
  const ProcessStacks stacks = look(0x7ffffff0, kMayStop);
  EXPECT_TRUE(stacks.threads.empty());
  ASSERT_EQ(stacks.problems.size(), 1U);
  EXPECT_EQ(stacks.problems[0], "there is no process 2147483632");
}

TEST(Capture, OfAKernelThreadSaysWhatItIs) {
  const auto tasks = ProcTasks::open(2);
  if (!tasks || tasks->name(2).value_or(ThreadName{}).name != "kthreadd") {
    GTEST_SKIP() << "no kernel threads in this pid namespace";
  }
  const ProcessStacks stacks = look(2, kMayStop);
  ASSERT_EQ(stacks.problems.size(), 1U);
  EXPECT_FALSE(stacks.threads.empty());
}

TEST(RunCounts, StandStillWhileAThreadSleeps) {
  Scene scene("idle");
  scene.number("pid");
  eventually([&] { return state_of(scene.pid(), scene.pid()) == 'S'; });
  const auto first = run_counts(scene.pid());
  ASSERT_EQ(first.size(), 1U);
  EXPECT_GT(first[0].second, 0U);
  EXPECT_EQ(run_counts(scene.pid()), first);
}

}  // namespace
}  // namespace ddpdoctor::stacks
