// SPDX-License-Identifier: Apache-2.0
// Locks, joins, children, terminals; and invalid arguments.
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include "tests/support/system_calls.h"
#include "tests/unit/sources/waiting.h"

namespace ddpdoctor::sources {
namespace {

TEST(WaitTargets, FlockAndFcntlNameTheHolder) {
  const Folder folder;
  const std::string path = folder.file("data.lock");
  write_file(path, "");
  Child holder([&] {
    const int fd = ::open(path.c_str(), O_RDWR);
    ::flock(fd, LOCK_EX);
    struct flock whole{};
    whole.l_type = F_WRLCK;
    ::fcntl(fd, F_SETLKW, &whole);
    hold();
  });
  ASSERT_TRUE(eventually([&] { return sleeps_in(holder.pid(), test::kPause); }));
  Child flocker([&] { ::flock(::open(path.c_str(), O_RDWR), LOCK_EX); });
  Child posix([&] {
    struct flock whole{};
    whole.l_type = F_WRLCK;
    ::fcntl(::open(path.c_str(), O_RDWR), F_SETLKW, &whole);
  });
  ASSERT_TRUE(eventually(
      [&] { return sleeps_in(flocker.pid(), SYS_flock) && sleeps_in(posix.pid(), SYS_fcntl); }));
  const auto found = wait_of({flocker.pid(), holder.pid()});
  expect(found, "file-lock", pid_target(holder.pid()));
  EXPECT_NE(found->detail.find(path), std::string::npos) << found->detail;
  expect(wait_of({posix.pid(), holder.pid()}), "file-lock", pid_target(holder.pid()));
}

TEST(WaitTargets, FlockNamesAChildThatKeepsTheOpenFileOfItsParent) {
  const Folder folder;
  const std::string path = folder.file("data.lock");
  write_file(path, "");
  const auto taker = [&](bool closes) {
    return [&folder, &path, closes] {
      const int fd = ::open(path.c_str(), O_RDWR);
      ::flock(fd, LOCK_EX);
      const pid_t child = ::fork();
      if (child == 0) {
        hold();
      }
      write_file(folder.file("heir"), std::to_string(child));
      if (closes) {
        ::close(fd);
        ::flock(::open(path.c_str(), O_RDWR), LOCK_EX);
      }
      hold();
    };
  };
  const auto heir = [&folder] {
    return number<pid_t>(*read_file(folder.file("heir"))).value_or(0);
  };
  {
    Child parent(taker(true));
    ASSERT_TRUE(eventually([&] { return sleeps_in(parent.pid(), SYS_flock); }));
    const auto found = wait_of({parent.pid(), heir()});
    expect(found, "file-lock", pid_target(heir()));
    EXPECT_NE(found->detail.find("forked under the lock by"), std::string::npos) << found->detail;
    ::kill(heir(), SIGKILL);
  }
  Child parent(taker(false));  // it has the locked file open itself
  ASSERT_TRUE(eventually([&] { return sleeps_in(parent.pid(), test::kPause); }));
  Child waiter([&] { ::flock(::open(path.c_str(), O_RDWR), LOCK_EX); });
  ASSERT_TRUE(eventually([&] { return sleeps_in(waiter.pid(), SYS_flock); }));
  expect(wait_of({waiter.pid(), parent.pid(), heir()}), "file-lock", pid_target(parent.pid()));
  ::kill(heir(), SIGKILL);
}

TEST(WaitTargets, WaitingForAChildNamesIt) {
  const Folder folder;
  const auto parent_of = [&folder](bool by_pid) {
    return [&folder, by_pid] {
      const pid_t child = ::fork();
      if (child == 0) {
        hold();
      }
      write_file(folder.file(by_pid ? "named" : "any"), std::to_string(child));
      ::waitpid(by_pid ? child : -1, nullptr, 0);
    };
  };
  Child named(parent_of(true));
  Child any(parent_of(false));
  ASSERT_TRUE(eventually(
      [&] { return sleeps_in(named.pid(), SYS_wait4) && sleeps_in(any.pid(), SYS_wait4); }));
  const pid_t child_of_named = number<pid_t>(*read_file(folder.file("named"))).value_or(0);
  const pid_t child_of_any = number<pid_t>(*read_file(folder.file("any"))).value_or(0);
  expect(wait_of({named.pid(), child_of_named}), "process", pid_target(child_of_named));
  expect(wait_of({any.pid(), child_of_any}), "process", pid_target(child_of_any));
}

TEST(WaitTargets, JoiningAThreadNamesIt) {
  Child joiner([] { std::thread([] { hold(); }).join(); });
  std::vector<int> tids;
  ASSERT_TRUE(eventually([&] {
    tids = numbered_entries(proc_path(joiner.pid(), "task"));
    return tids.size() == 2 && sleeps_in(joiner.pid(), SYS_futex);
  }));
  expect(wait_of({joiner.pid()}), "thread",
         fmt::format("thread:{}", tids[0] == joiner.pid() ? tids[1] : tids[0]));
}

TEST(WaitTargets, AMutexNamesTheThreadThatOwnsIt) {
  Child locker([] {
    std::mutex mutex;
    std::atomic<bool> held = false;
    std::thread owner([&] {
      const std::lock_guard lock(mutex);
      held = true;
      hold();
    });
    while (!held) {
      std::this_thread::yield();
    }
    mutex.lock();
  });
  ASSERT_TRUE(eventually([&] {
    return numbered_entries(proc_path(locker.pid(), "task")).size() == 2 &&
           sleeps_in(locker.pid(), SYS_futex);
  }));
  stacks::ProcessStacks stacks = captured(locker.pid());
  stacks::Frame frame;
  frame.function = "pthread_mutex_lock";
  frame.module = "libc.so.6";
  for (stacks::ThreadStack& thread : stacks.threads) {
    thread.frames = {frame};
  }
  const pid_t owner =
      stacks.threads[0].tid == locker.pid() ? stacks.threads[1].tid : stacks.threads[0].tid;
  const auto targets = wait_targets(job_of({locker.pid()}), {stacks});
  const auto found = targets.find({locker.pid(), locker.pid()});
  ASSERT_NE(found, targets.end());
  EXPECT_EQ(found->second.kind, "mutex");
  EXPECT_EQ(found->second.target, fmt::format("thread:{}", owner));
}

TEST(WaitTargets, ReadingATerminalIsWaitingForInput) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0) {
    GTEST_SKIP() << "no pseudo terminals here";
  }
  const std::string name = ::ptsname(terminal);
  char byte = 0;
  Child reader([&] {
    [[maybe_unused]] const ssize_t got = ::read(::open(name.c_str(), O_RDWR | O_NOCTTY), &byte, 1);
  });
  ASSERT_TRUE(eventually([&] { return sleeps_in(reader.pid(), SYS_read); }));
  const auto found = wait_of({reader.pid()});
  expect(found, "input", "");
  EXPECT_NE(found->detail.find(name), std::string::npos);
  ::close(terminal);
}

TEST(WaitTargets, ReadingAPipeAsStandardInputIsWaitingForInput) {
  const Pipe pipe;
  char byte = 0;
  Child reader([&] {
    ::dup2(pipe.ends[0], 0);
    ::close(pipe.ends[1]);
    [[maybe_unused]] const ssize_t got = ::read(0, &byte, 1);
  });
  ASSERT_TRUE(eventually([&] { return sleeps_in(reader.pid(), SYS_read); }));
  expect(wait_of({reader.pid()}), "input", pid_target(::getpid()));
}

TEST(WaitTargets, AWorkerWaitsForTheProcessThatMadeItAndNotForItsSiblings) {
  const Pipe pipe;
  char byte = 0;
  Child worker([&] { [[maybe_unused]] const ssize_t got = ::read(pipe.ends[0], &byte, 1); });
  Child sibling([] { hold(); });  // has inherited both ends, too
  ASSERT_TRUE(eventually(
      [&] { return sleeps_in(worker.pid(), SYS_read) && sleeps_in(sibling.pid(), test::kPause); }));
  JobTree job = job_of({::getpid(), worker.pid(), sibling.pid()});
  job.processes[1].role = job.processes[2].role = JobRole::kDataLoaderWorker;
  const auto targets = wait_targets(job, {captured(worker.pid())});
  const auto found = targets.find({worker.pid(), worker.pid()});
  ASSERT_NE(found, targets.end());
  EXPECT_EQ(found->second.target, pid_target(::getpid()));
}

TEST(WaitTargets, WildArgumentsAreHarmless) {
  Child child([] { hold(); });
  ASSERT_TRUE(eventually([&] { return sleeps_in(child.pid(), test::kPause); }));
  const JobTree job = job_of({child.pid()});
  std::vector<int> calls{SYS_read,   SYS_ppoll, SYS_pselect6, test::kEpollWait,
                         SYS_flock,  SYS_futex, SYS_wait4,    SYS_waitid,
                         SYS_openat, SYS_clone, SYS_connect,  100000};
#ifdef SYS_poll
  calls.insert(calls.end(), {SYS_poll, SYS_select, SYS_open});
#endif
  for (const int call : calls) {
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0},
                                      std::uint64_t{1} << 63, std::uint64_t{0x7fffffff}}) {
      stacks::ProcessStacks stacks = captured(child.pid());
      stacks.threads[0].syscall =
          stacks::Syscall{.number = call, .arguments = {value, value, value, value, value, value}};
      for (const auto& [thread, target] : wait_targets(job, {stacks})) {
        EXPECT_FALSE(target.kind.empty());
      }
    }
  }
}

}  // namespace
}  // namespace ddpdoctor::sources
