// SPDX-License-Identifier: Apache-2.0
// Compares our unwinding with programs that know their own stacks
// (tests/support/stack_programs/known_chains.cc), built with difficult compiler settings, and with
// libunwind.
#include <algorithm>
#include <map>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#ifdef DDPDOCTOR_HAVE_LIBUNWIND
#include <libunwind-ptrace.h>
#endif

#include "collector/stacks/capture.h"
#include "collector/stacks/native/native_unwind.h"
#include "collector/stacks/target/live_target.h"
#include "collector/stacks/target/proc_tasks.h"
#include "collector/stacks/target/ptrace_stop.h"
#include "tests/support/child_process.h"
#include "tests/support/places.h"

namespace ddpdoctor::stacks {
namespace {

using Chain = std::vector<std::string>;

/// Frames of the program's own chain; frames of libraries and closures between them are omitted.
Chain chain_of(const ThreadStack& thread) {
  Chain chain;
  for (const Frame& frame : thread.frames) {
    if (frame.function.starts_with("chain_") && frame.function.find('{') == std::string::npos) {
      chain.push_back(frame.function);
    }
  }
  return chain;
}

std::string joined(const Chain& chain) {
  std::string text;
  for (const std::string& one : chain) {
    text += one + " ";
  }
  return text;
}

bool can_run(const std::string& program) {
#if defined(__x86_64__)
  return program != "chains_O3_avx2" || __builtin_cpu_supports("avx2") != 0;
#else
  return program != "chains_O3_avx2";
#endif
}

class KnownChains : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!can_run(GetParam())) {
      GTEST_SKIP() << "this processor has no AVX2";
    }
    child_.emplace(std::vector<std::string>{tests::built_file("stack_programs/") + GetParam()});
    read_chains();
    wait_until_all_sleep();
  }

  /// "threads N" once and N lines "TID innermost … outermost", in any order.
  void read_chains() {
    std::size_t expected = ~std::size_t{0};
    while (chains_.size() < expected) {
      const auto line = child_->line();
      ASSERT_TRUE(line.has_value());
      std::istringstream words(*line);
      std::string first;
      words >> first;
      if (first == "threads") {
        words >> expected;
        continue;
      }
      Chain& chain = chains_[std::stoi(first)];
      for (std::string name; words >> name;) {
        chain.push_back(name);
      }
    }
  }

  /// After the last line no thread waits for the printing lock any more, so a sleeping thread is in
  /// its blocking call.
  void wait_until_all_sleep() {
    const auto tasks = ProcTasks::open(child_->pid());
    ASSERT_TRUE(tasks.has_value());
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (const auto& [tid, chain] : chains_) {
      while (tasks->name(tid).value_or(ThreadName{}).state != 'S') {
        ASSERT_LT(std::chrono::steady_clock::now(), until)
            << "thread " << tid << " does not go to sleep";
        std::this_thread::yield();
      }
    }
  }

  [[nodiscard]] ProcessStacks look(bool allow_stop) const {
    const pid_t pid = child_->pid();
    auto stacks = capture(std::span(&pid, 1), {.allow_stop = allow_stop,
                                               .native = true,
                                               .torch_state = false,
                                               .process_deadline = std::chrono::seconds(20)});
    return std::move(stacks.at(0));
  }

  void expect_chains(const ProcessStacks& stacks) {
    std::size_t seen = 0;
    for (const ThreadStack& thread : stacks.threads) {
      if (const auto known = chains_.find(thread.tid); known != chains_.end()) {
        ++seen;
        EXPECT_EQ(joined(chain_of(thread)), joined(known->second)) << thread.problem;
        EXPECT_TRUE(thread.complete) << thread.problem;
      }
    }
    EXPECT_EQ(seen, chains_.size());
  }

  std::optional<test::ChildProcess> child_;
  std::map<pid_t, Chain> chains_;
};

TEST_P(KnownChains, AreReadWithoutStoppingAnybody) {
  const ProcessStacks stacks = look(false);
  expect_chains(stacks);
  for (const ThreadStack& thread : stacks.threads) {
    EXPECT_EQ(thread.method, CaptureMethod::kNoStop) << thread.problem;
  }
  EXPECT_EQ(stacks.longest_stop_ms, 0);
}

TEST_P(KnownChains, AreNeverInferredWhenStoppingIsAllowed) {
  // A busy machine may not let a thread halt within the deadline of a stop; a later stop works.
  ProcessStacks stacks;
  EXPECT_TRUE(test::eventually([&] {
    stacks = look(true);
    return std::none_of(stacks.threads.begin(), stacks.threads.end(), [](const auto& thread) {
      return std::any_of(thread.frames.begin(), thread.frames.end(),
                         [](const Frame& frame) { return frame.inferred; });
    });
  }));
  expect_chains(stacks);
}

/// Program counters of a stopped thread, from our unwinder and from libunwind.
struct Stopped {
  std::vector<RemoteAddress> ours;
  std::vector<RemoteAddress> libunwind;
};

Stopped stop_and_unwind(LiveTarget& target, pid_t tid) {
  Stopped stopped;
  const auto outcome =
      with_stopped_thread(tid, std::chrono::seconds(5), [&](const Registers& registers) {
        target.memory().forget();
        Walk walk{.target = target, .stack = target.memory()};
        for (const UnwoundFrame& frame : unwind(walk, registers).frames) {
          stopped.ours.push_back(frame.pc);
        }
#ifdef DDPDOCTOR_HAVE_LIBUNWIND
        unw_addr_space_t const space = ::unw_create_addr_space(&_UPT_accessors, 0);
        void* const context = ::_UPT_create(tid);
        unw_cursor_t cursor{};
        if (::unw_init_remote(&cursor, space, context) == 0) {
          do {
            unw_word_t pc = 0;
            ::unw_get_reg(&cursor, UNW_REG_IP, &pc);
            stopped.libunwind.push_back(pc);
          } while (::unw_step(&cursor) > 0);
        }
        ::_UPT_destroy(context);
        ::unw_destroy_addr_space(space);
#endif
      });
  EXPECT_TRUE(outcome.stopped) << outcome.problem;
  return stopped;
}

TEST_P(KnownChains, AreTheSameStoppedAndNotAndByLibunwind) {
  const ProcessStacks stacks = look(false);
  ElfCache files;
  const auto target = LiveTarget::open(child_->pid(), files);
  ASSERT_TRUE(target.has_value());
  for (const ThreadStack& thread : stacks.threads) {
    std::vector<RemoteAddress> not_stopped;
    for (const Frame& frame : thread.frames) {
      not_stopped.push_back(frame.address);
    }
    const Stopped stopped = stop_and_unwind(**target, thread.tid);
    EXPECT_EQ(not_stopped, stopped.ours) << thread.tid;
#ifdef DDPDOCTOR_HAVE_LIBUNWIND
    // libunwind ends stacks of static programs early and reports success; otherwise it must agree.
    if (std::string_view(GetParam()) != "chains_static") {
      auto theirs = stopped.libunwind;
      if (!theirs.empty() && theirs.back() == 0) {
        theirs.pop_back();
      }
      EXPECT_EQ(stopped.ours, theirs) << thread.tid;
    }
#endif
  }
}

INSTANTIATE_TEST_SUITE_P(Flags, KnownChains,
                         testing::Values("chains_O0", "chains_O2", "chains_O2_frame_pointer",
                                         "chains_O3_avx2", "chains_Os_no_plt", "chains_static"),
                         [](const auto& one) { return std::string(one.param).substr(7); });

}  // namespace
}  // namespace ddpdoctor::stacks
