// SPDX-License-Identifier: Apache-2.0
// Real processes that wait on real kernel objects: which object it is, and who could end the wait.
#include <semaphore.h>

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "collector/sources/waits/objects.h"
#include "tests/support/system_calls.h"
#include "tests/unit/sources/waiting.h"

namespace ddpdoctor::sources {
namespace {

/// The object on which the main thread of the first process waits; `function` is its native frame.
std::optional<ObjectWait> object_of(const std::vector<pid_t>& pids,
                                    const std::string& function = {}) {
  std::vector<stacks::ProcessStacks> stacks;
  for (const pid_t pid : pids) {
    stacks.push_back(captured(pid));
  }
  if (!function.empty()) {
    stacks::Frame frame;
    frame.language = stacks::Language::kNative;
    frame.function = function;
    stacks.front().threads.front().frames.push_back(std::move(frame));
  }
  const JobTree job = job_of(pids);
  WaitContext context(job, stacks);
  return object_wait(context, {.process = job.processes.front(),
                               .stacks = stacks.front(),
                               .thread = stacks.front().threads.front()});
}

TEST(ObjectWaits, ASemaphoreIsTheSameInAllWhoMapIt) {
  auto* shared = static_cast<sem_t*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(::sem_init(shared, 1, 0), 0);
  const auto waits = [shared] { ::sem_wait(shared); };
  Child one(waits);
  Child two(waits);
  ASSERT_TRUE(eventually(
      [&] { return sleeps_in(one.pid(), SYS_futex) && sleeps_in(two.pid(), SYS_futex); }));
  const auto found = object_of({one.pid(), two.pid()}, "_multiprocessing_SemLock_acquire");
  const auto other = object_of({two.pid(), one.pid()}, "_multiprocessing_SemLock_acquire");
  ASSERT_TRUE(found && other);
  EXPECT_EQ(found->kind, "semaphore");
  EXPECT_EQ(found->object, other->object);
  EXPECT_EQ(found->enders, (std::set<pid_t>{one.pid(), two.pid()}));
  EXPECT_EQ(found->waiters, 2);
  EXPECT_FALSE(found->ready);
  EXPECT_FALSE(found->open);
  ::munmap(shared, 4096);
}

TEST(ObjectWaits, AFullPipeTellsItsBytesAndItsReaders) {
  const Pipe pipe;
  Child writer([&] {
    pipe.keep(1);
    const std::vector<char> bytes(1 << 21);
    [[maybe_unused]] const ssize_t put = ::write(pipe.ends[1], bytes.data(), bytes.size());
  });
  Child reader([&] {
    pipe.keep(0);
    hold();
  });
  ASSERT_TRUE(eventually(
      [&] { return sleeps_in(writer.pid(), SYS_write) && sleeps_in(reader.pid(), test::kPause); }));
  const auto found = object_of({writer.pid(), reader.pid()});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, "pipe");
  EXPECT_EQ(found->operation, "write");
  EXPECT_EQ(found->enders, (std::set<pid_t>{reader.pid()}));
  EXPECT_FALSE(found->ready);
  EXPECT_EQ(found->queued, 65536);
}

TEST(ObjectWaits, APipeWithBytesInItIsAboutToWake) {
  const Pipe pipe;
  [[maybe_unused]] const ssize_t put = ::write(pipe.ends[1], "x", 1);
  Child reader([&] { hold(); });
  ASSERT_TRUE(eventually([&] { return sleeps_in(reader.pid(), test::kPause); }));
  std::vector<stacks::ProcessStacks> stacks{captured(reader.pid())};
  stacks[0].threads[0].syscall = stacks::Syscall{};
  stacks[0].threads[0].syscall->number = SYS_read;
  stacks[0].threads[0].syscall->arguments[0] = static_cast<std::uint64_t>(pipe.ends[0]);
  const JobTree job = job_of({reader.pid()});
  WaitContext context(job, stacks);
  const auto found = object_wait(
      context, {.process = job.processes[0], .stacks = stacks[0], .thread = stacks[0].threads[0]});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->ready);
  EXPECT_EQ(found->queued, 1);
}

TEST(ObjectWaits, BothEndsOfASocketpairHaveOneName) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const auto sends = [&ends](std::size_t mine) {
    ::close(ends.at(1 - mine));
    const std::vector<char> bytes(1 << 22);
    [[maybe_unused]] const ssize_t put = ::write(ends.at(mine), bytes.data(), bytes.size());
  };
  Child one([&] { sends(0); });
  Child two([&] { sends(1); });
  ::close(ends[0]);
  ::close(ends[1]);
  ASSERT_TRUE(eventually(
      [&] { return sleeps_in(one.pid(), SYS_write) && sleeps_in(two.pid(), SYS_write); }));
  const auto found = object_of({one.pid(), two.pid()});
  const auto other = object_of({two.pid(), one.pid()});
  ASSERT_TRUE(found && other);
  EXPECT_EQ(found->kind, "socket");
  EXPECT_EQ(found->object, other->object);
  EXPECT_EQ(found->enders, (std::set<pid_t>{two.pid()}));
  EXPECT_EQ(other->enders, (std::set<pid_t>{one.pid()}));
  EXPECT_GT(found->queued.value_or(0), 0);
}

TEST(ObjectWaits, ALockOnAFileLeadsToItsTaker) {
  const Folder folder;
  const std::string path = folder.path() + "/lock";
  const auto open_it = [&path] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600); };
  Child holder([&] {
    ::flock(open_it(), LOCK_EX);
    hold();
  });
  ASSERT_TRUE(eventually([&] { return sleeps_in(holder.pid(), test::kPause); }));
  Child waiter([&] { ::flock(open_it(), LOCK_EX); });
  ASSERT_TRUE(eventually([&] { return sleeps_in(waiter.pid(), SYS_flock); }));
  const auto found = object_of({waiter.pid(), holder.pid()});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, "file-lock");
  EXPECT_EQ(found->enders, (std::set<pid_t>{holder.pid()}));
  EXPECT_EQ(found->name, path);
  EXPECT_FALSE(found->open);
}

TEST(ObjectWaits, AParentWaitsForTheEndOfItsChild) {
  Child parent([] {
    const pid_t child = ::fork();
    if (child == 0) {
      hold();
    }
    ::waitpid(child, nullptr, 0);
  });
  ASSERT_TRUE(eventually([&] { return sleeps_in(parent.pid(), SYS_wait4); }));
  const auto found = object_of({parent.pid()});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, "process");
  EXPECT_EQ(found->enders.size(), 1u);
}

TEST(ObjectWaits, ATerminalOrFileIsOpenToAnybody) {
  Child reader([] { hold(); });
  ASSERT_TRUE(eventually([&] { return sleeps_in(reader.pid(), test::kPause); }));
  EXPECT_FALSE(object_of({reader.pid()}));
}

}  // namespace
}  // namespace ddpdoctor::sources
