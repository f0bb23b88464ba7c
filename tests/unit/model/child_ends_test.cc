// SPDX-License-Identifier: Apache-2.0
// Which processes failed by themselves, and which were ended afterwards by a launcher.
#include "collector/model/building/child_ends.h"

#include <csignal>
#include <set>

#include <gtest/gtest.h>

namespace ddpdoctor::model {
namespace {

using sources::RecordedEvent;
using sources::RecordedState;
using sources::Recording;

Recording parent(std::string command, std::vector<RecordedEvent> events) {
  Recording recording;
  recording.pid = 10;
  recording.command = std::move(command);
  recording.events = std::move(events);
  double time = 1000;
  for (RecordedEvent& event : recording.events) {
    event.time = time++;
  }
  return recording;
}

Recording rank(pid_t pid) {
  Recording recording;
  recording.pid = pid;
  recording.ppid = 10;
  recording.rank = pid - 100;
  return recording;
}

RecordedEvent sent(std::int64_t pid, int number) {
  return {.kind = "signal-sent", .count = pid, .peer = number};
}

RecordedEvent came_late(std::int64_t pid, int number) {
  RecordedEvent event = sent(pid, number);
  event.state = RecordedState::kCompleted;
  return event;
}

RecordedEvent ended(std::int64_t pid, int status) {
  return {.kind = "child-exit", .count = pid, .peer = status};
}

std::set<pid_t> cleaned(const std::string& command, std::vector<RecordedEvent> events) {
  std::set<pid_t> pids;
  for (const Fact& fact :
       cleaned_up({parent(command, std::move(events)), rank(100), rank(101), rank(102)})) {
    pids.insert(*fact.pid);
  }
  return pids;
}

constexpr const char* kHydra = "/usr/bin/hydra_pmi_proxy --proxy-id 0";
constexpr const char* kShell = "bash start.sh";
constexpr int kStatusOne = 1 << 8;

TEST(ChildEnds, KeepsTheSignalOrTheStatusOfEach) {
  const auto ends =
      child_ends({parent(kShell, {ended(100, SIGKILL), ended(101, kStatusOne), ended(102, 0)})});
  EXPECT_EQ(ends.at(100).signal, SIGKILL);
  EXPECT_EQ(ends.at(101).status, 1);
  EXPECT_EQ(ends.at(102).status, 0);
}

TEST(CleanedUp, TellsWhoWasOnItsWayOutFromWhomMpichsLauncherEnded) {
  // it waits for its children in the order of their pids
  EXPECT_EQ(cleaned(kHydra, {sent(100, SIGKILL), came_late(101, SIGKILL), sent(102, SIGKILL),
                             ended(100, SIGKILL), ended(101, SIGKILL), ended(102, SIGKILL)}),
            (std::set<pid_t>{100, 102}));
}

TEST(CleanedUp, BelievesTheFirstOfSeveralSignals) {
  EXPECT_EQ(cleaned(kHydra, {sent(100, SIGKILL), came_late(101, SIGKILL), came_late(100, SIGKILL),
                             sent(101, SIGKILL)}),
            (std::set<pid_t>{100}));
}

TEST(CleanedUp, WithoutSignalsNobodyIsTheFirstOfThoseWhoEndedAlike) {
  EXPECT_EQ(cleaned(kHydra, {ended(100, SIGKILL), ended(101, SIGKILL)}),
            (std::set<pid_t>{100, 101}));
  EXPECT_EQ(cleaned(kHydra, {ended(101, SIGKILL), ended(100, kStatusOne)}), (std::set<pid_t>{}));
  EXPECT_EQ(cleaned(kShell, {ended(100, SIGKILL), ended(101, SIGKILL)}), (std::set<pid_t>{}));
}

TEST(CleanedUp, AnyLauncherCleansUpAfterARankFell) {
  EXPECT_EQ(cleaned(kShell, {ended(101, SIGKILL), sent(100, SIGTERM), sent(102, SIGKILL)}),
            (std::set<pid_t>{100, 102}));
  EXPECT_EQ(cleaned(kShell, {ended(101, kStatusOne), sent(100, SIGKILL)}), (std::set<pid_t>{100}));
  EXPECT_EQ(cleaned(kShell, {sent(100, SIGKILL), came_late(101, SIGKILL)}), (std::set<pid_t>{100}));
}

TEST(CleanedUp, AShellThatKillsARankWhenNothingWasAmissIsTheReason) {
  EXPECT_EQ(cleaned(kShell, {sent(101, SIGKILL), ended(101, SIGKILL)}), (std::set<pid_t>{}));
  EXPECT_EQ(cleaned(kShell, {ended(100, 0), sent(101, SIGKILL), ended(101, SIGKILL)}),
            (std::set<pid_t>{}));
  EXPECT_EQ(cleaned(kShell, {ended(55, kStatusOne), sent(101, SIGKILL), ended(101, SIGKILL)}),
            (std::set<pid_t>{}))
      << "a program that failed and is no rank";
  EXPECT_EQ(cleaned(kShell, {sent(101, SIGKILL), ended(101, SIGKILL), sent(102, SIGKILL)}),
            (std::set<pid_t>{}));
}

}  // namespace
}  // namespace ddpdoctor::model
