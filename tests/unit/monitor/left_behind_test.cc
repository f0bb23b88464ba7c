// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/left_behind.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/unique_fd.h"
#include "collector/sources/processes/process_table.h"
#include "tests/support/child_process.h"

namespace ddpdoctor::monitor {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// A segment of one page with a name of its own; removed at the end.
class Segment {
 public:
  Segment()
      : name_(fmt::format("/ddpdoctor-test-{}", ::getpid())),
        descriptor_(::shm_open(name_.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600)) {
    EXPECT_EQ(::ftruncate(descriptor_.get(), 4096), 0);
  }
  ~Segment() {
    ::shm_unlink(name_.c_str());
  }
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  void close() {
    descriptor_.reset();
  }

  /// True if it is reported as left behind by a job that made it at `time`.
  [[nodiscard]] bool left(double time) const {
    model::JobModel job;
    job.facts.push_back(
        {.rank = 0,
         .pid = ::getpid(),
         .kind = "shm-segment",
         .fields = {{"path", "/dev/shm" + name_}, {"recorded", true}, {"time", time}}});
    mark_segments_left(job);
    return job.facts.front().flag("left_behind") == true;
  }

 private:
  std::string name_;
  base::UniqueFd descriptor_;
};

TEST(SegmentsLeft, AreThoseThatNobodyHasOpen) {
  Segment segment;
  const double made = now();
  EXPECT_FALSE(segment.left(made));
  segment.close();
  EXPECT_TRUE(segment.left(made));
}

TEST(SegmentsLeft, AreNotThoseThatWereThereBeforeTheJob) {
  Segment segment;
  segment.close();
  struct statx state{};
  ::statx(AT_FDCWD, "/dev/shm", 0, STATX_BTIME, &state);
  if ((state.stx_mask & STATX_BTIME) == 0) {
    GTEST_SKIP() << "this kernel does not tell when a file in /dev/shm was made";
  }
  EXPECT_FALSE(segment.left(now() + 60));
}

TEST(SegmentsLeft, AreOnlyLookedForInTheFolderItself) {
  model::JobModel job;
  job.facts.push_back(
      {.rank = 0,
       .pid = 1,
       .kind = "shm-segment",
       .fields = {{"path", std::string("/dev/shm/../../etc/passwd")}, {"recorded", true}}});
  mark_segments_left(job);
  EXPECT_FALSE(job.facts.front().flag("left_behind").has_value());
}

sources::Recording recording_of(pid_t pid, pid_t ppid) {
  sources::Recording recording;
  recording.pid = pid;
  recording.ppid = ppid;
  recording.start_ticks = sources::read_process(pid)->start_ticks;
  return recording;
}

TEST(ProcessesLeft, WhoWasStartedByAKilledProcessIsAnOrphanAndADaemonIsNot) {
  test::ChildProcess child({"cat"});
  constexpr pid_t kLauncher = 4'190'000;
  sources::Recording shell;
  shell.events.push_back({.kind = "child-exit", .count = kLauncher, .peer = SIGKILL});
  std::vector<sources::Recording> recordings{shell, recording_of(child.pid(), kLauncher)};
  const model::JobModel orphans = processes_left(::getpid(), 0, recordings);
  ASSERT_EQ(orphans.facts.size(), 1u);
  EXPECT_EQ(orphans.facts.front().pid, child.pid());
  forget_daemons(orphans, recordings);
  EXPECT_EQ(recordings.size(), 2u);

  recordings.front().events.front().peer = 0;  // it ended by itself
  const model::JobModel daemons = processes_left(::getpid(), 0, recordings);
  EXPECT_TRUE(daemons.facts.empty());
  forget_daemons(daemons, recordings);
  EXPECT_EQ(recordings.size(), 1u);
}

}  // namespace
}  // namespace ddpdoctor::monitor
