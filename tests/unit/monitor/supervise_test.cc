// SPDX-License-Identifier: Apache-2.0
// supervise() with real commands: the tests depend on the order of events, not on how long anything
// takes.
#include "collector/monitor/supervise.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "tests/support/child_process.h"
#include "tests/unit/sources/ring_in_memory.h"

namespace ddpdoctor::monitor {
namespace {

class Supervise : public testing::Test {
 protected:
  void SetUp() override {
    ::sigprocmask(SIG_SETMASK, nullptr, &before_);
    block_signals();
    std::string pattern = testing::TempDir() + "supervise-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    spool_ = pattern;
  }

  void TearDown() override {
    if (child_ > 0 && ::kill(child_, SIGKILL) == 0) {
      ::waitpid(child_, nullptr, 0);
    }
    std::filesystem::remove_all(spool_);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }

  void launch(const char* script) {
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) {
      ::sigprocmask(SIG_SETMASK, &before_, nullptr);
      ::execl("/bin/sh", "sh", "-c", script, static_cast<char*>(nullptr));
      ::_exit(127);
    }
  }

  Outcome watch(const SuperviseOptions& options, const Opinion& opinion = {}) {
    return supervise(child_, spool_, options, [&](const model::JobModel&, Occasion occasion) {
      told_.push_back(occasion);
      return opinion;
    });
  }

  /// Writes a ring in which a parent saw its child killed.
  void leave_ring_of_a_killed_child() {
    sources::test::RingInMemory memory;
    wire::Slot& slot = memory.add_slot(wire::EventKind::kChildExit, wire::Phase::kEnqueued);
    slot.count = 4712;
    slot.peer = SIGKILL;
    std::ofstream(spool_ + "/4711-1.ring", std::ios::binary)
        .write(reinterpret_cast<const char*>(memory.bytes().data()),
               static_cast<std::streamsize>(memory.bytes().size()));
  }

  [[nodiscard]] bool child_is_gone() const {
    return ::kill(child_, 0) != 0;
  }

  std::string spool_;
  pid_t child_ = -1;
  std::vector<Occasion> told_;

 private:
  sigset_t before_{};
};

/// A Company that reads the whole job.
class Reader : public Company {
 public:
  bool led = true;
  bool wants = false;
  bool hang = false;
  int alarms = 0;
  pid_t ends = 0;  // killed when the alarm is raised

  [[nodiscard]] bool leads() const override {
    return led;
  }
  [[nodiscard]] bool awaited() const override {
    return false;
  }
  bool wants_look() override {
    return std::exchange(wants, false);
  }
  [[nodiscard]] bool found_hang() const override {
    return hang;
  }
  void alarm() override {
    ++alarms;
    if (ends > 0) {
      ::kill(ends, SIGTERM);
    }
  }
};

TEST_F(Supervise, WhoReadsTheWholeJobIsShownThisPartWhenHeAsks) {
  launch("exec sleep 600");
  Reader reader;
  reader.wants = true;
  const Outcome outcome = supervise(child_, spool_, {.company = &reader},
                                    [&](const model::JobModel& job, Occasion occasion) {
                                      told_.push_back(occasion);
                                      EXPECT_FALSE(job.observations.empty());
                                      ::kill(child_, SIGTERM);
                                      return Opinion{};
                                    });
  EXPECT_EQ(outcome.status, 128 + SIGTERM);
  ASSERT_FALSE(told_.empty());
  EXPECT_EQ(told_.front(), Occasion::kAsked);
}

TEST_F(Supervise, WhatIsProvableHereIsLeftToWhoReadsTheWholeJob) {
  launch("exec sleep 600");
  leave_ring_of_a_killed_child();
  Reader reader;
  reader.ends = child_;
  supervise(child_, spool_, {.company = &reader}, [&](const model::JobModel&, Occasion occasion) {
    told_.push_back(occasion);
    return Opinion{};
  });
  EXPECT_EQ(told_, std::vector<Occasion>{Occasion::kEnded});
  EXPECT_EQ(reader.alarms, 1);
}

TEST_F(Supervise, AHangThatWasFoundElsewhereEndsThisPartToo) {
  launch("exec sleep 600");
  Reader reader;
  reader.hang = true;
  const Outcome outcome = supervise(child_, spool_, {.kill_on_hang = true, .company = &reader},
                                    [](const model::JobModel&, Occasion) { return Opinion{}; });
  EXPECT_EQ(outcome.status, 124);
  EXPECT_TRUE(outcome.ended_by_us);
}

TEST_F(Supervise, EndsWithTheStatusOfTheCommandAndTellsItOnce) {
  launch("exit 7");
  const Outcome outcome = watch({});
  EXPECT_EQ(outcome.status, 7);
  EXPECT_FALSE(outcome.ended_by_us);
  EXPECT_EQ(told_, std::vector{Occasion::kEnded});
}

TEST_F(Supervise, SaysASignalAsAShellDoes) {
  launch("kill -SEGV $$");
  EXPECT_EQ(watch({}).status, 128 + SIGSEGV);
}

TEST_F(Supervise, EndsAHungCommandOnlyWhenItMay) {
  launch("exec sleep 1000");
  const Outcome outcome =
      watch({.hang_timeout = 0, .kill_on_hang = true}, {.finding = true, .hang = true});
  EXPECT_EQ(outcome.status, 124);
  EXPECT_TRUE(outcome.ended_by_us);
  EXPECT_EQ(told_, std::vector{Occasion::kSuspected});
  EXPECT_TRUE(child_is_gone());
}

TEST_F(Supervise, GoesOnWatchingAHungCommandThatItMayNotEnd) {
  // the command ends after it was suspected: the listener creates the file
  launch(("until test -e " + spool_ + "/suspected; do sleep 0.05; done; exit 3").c_str());
  const Outcome outcome = supervise(child_, spool_, {.hang_timeout = 0},
                                    [&](const model::JobModel&, Occasion occasion) {
                                      told_.push_back(occasion);
                                      std::ofstream(spool_ + "/suspected") << "yes";
                                      return Opinion{.finding = true, .hang = true};
                                    });
  EXPECT_EQ(outcome.status, 3);
  EXPECT_FALSE(outcome.ended_by_us);
  ASSERT_GE(told_.size(), 2U);
  EXPECT_EQ(told_.front(), Occasion::kSuspected);
  EXPECT_EQ(told_.back(), Occasion::kEnded);
}

TEST_F(Supervise, PassesOnASignalSentToItAlone) {
  launch(("trap 'exit 9' TERM; : > " + spool_ + "/ready; while :; do sleep 0.02; done").c_str());
  ASSERT_TRUE(test::eventually([&] { return std::filesystem::exists(spool_ + "/ready"); }));
  ::kill(::getpid(), SIGTERM);
  EXPECT_EQ(watch({}).status, 9);
  EXPECT_TRUE(told_.empty());  // after an interruption there is no diagnosis
}

TEST_F(Supervise, TellsAtOnceOfAChildThatWasKilled) {
  leave_ring_of_a_killed_child();
  launch("exec sleep 1000");
  const Outcome outcome =
      watch({.hang_timeout = 1000, .kill_on_hang = true}, {.finding = true, .hang = true});
  EXPECT_EQ(outcome.status, 124);
  EXPECT_EQ(told_, std::vector{Occasion::kProvable});
}

TEST_F(Supervise, KeepsWatchWhenARingIsNoRing) {
  std::ofstream(spool_ + "/1-1.ring") << "no ring";
  launch("exit 0");
  EXPECT_EQ(watch({}).status, 0);
  EXPECT_EQ(told_, std::vector{Occasion::kEnded});
}

}  // namespace
}  // namespace ddpdoctor::monitor
