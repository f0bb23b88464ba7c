// SPDX-License-Identifier: Apache-2.0
// Real pairs of processes: one blocks, the other is what it waits for.
#include "collector/sources/wait_targets.h"

#include <mutex>
#include <poll.h>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/unit/sources/children.h"

namespace ddpdoctor::sources {
namespace {

/// What the main thread of the first process waits for.
std::optional<WaitTarget> wait_of(const std::vector<pid_t>& pids) {
  std::vector<stacks::ProcessStacks> stacks;
  for (const pid_t pid : pids) {
    stacks.push_back(captured(pid));
  }
  const auto targets = wait_targets(job_of(pids), stacks);
  const auto found = targets.find({pids.front(), pids.front()});
  return found == targets.end() ? std::nullopt : std::optional(found->second);
}

std::string pid_target(pid_t pid) {
  return fmt::format("pid:{}", pid);
}

/// A process that holds whatever it inherited and does nothing.
void hold() {
  while (true) {
    ::pause();
  }
}

struct Pipe {
  Pipe() {
    [[maybe_unused]] const int status = ::pipe2(ends.data(), O_CLOEXEC);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  Pipe(Pipe&&) = delete;
  Pipe& operator=(Pipe&&) = delete;
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  /// Keeps one end only (in a child).
  void keep(int end) const {
    ::close(ends.at(static_cast<std::size_t>(1 - end)));
  }
  std::array<int, 2> ends{};
};

void expect(const std::optional<WaitTarget>& found, const std::string& kind,
            const std::string& target) {
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, kind) << found->detail;
  EXPECT_EQ(found->target, target) << found->detail;
}

TEST(WaitTargets, AReaderOfAPipeWaitsForItsWriter) {
  const Pipe pipe;
  char byte = 0;
  Child reader([&] {
    pipe.keep(0);
    [[maybe_unused]] const ssize_t got = ::read(pipe.ends[0], &byte, 1);
  });
  Child writer([&] {
    pipe.keep(1);
    hold();
  });
  ASSERT_TRUE(eventually(
      [&] { return sleeps_in(reader.pid(), SYS_read) && sleeps_in(writer.pid(), SYS_pause); }));
  const auto found = wait_of({reader.pid(), writer.pid()});
  expect(found, "pipe", pid_target(writer.pid()));
  EXPECT_NE(found->detail.find("rank 1"), std::string::npos) << found->detail;
}

TEST(WaitTargets, AWriterOfAFullPipeWaitsForItsReader) {
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
      [&] { return sleeps_in(writer.pid(), SYS_write) && sleeps_in(reader.pid(), SYS_pause); }));
  expect(wait_of({writer.pid(), reader.pid()}), "pipe", pid_target(reader.pid()));
}

TEST(WaitTargets, APipeLeadsOutOfTheJobToo) {
  const Pipe pipe;
  char byte = 0;
  Child reader([&] {
    pipe.keep(0);
    [[maybe_unused]] const ssize_t got = ::read(pipe.ends[0], &byte, 1);
  });
  ASSERT_TRUE(eventually([&] { return sleeps_in(reader.pid(), SYS_read); }));
  const auto found = wait_of({reader.pid()});  // this test holds the writing end
  expect(found, "pipe", pid_target(::getpid()));
  EXPECT_NE(found->detail.find("not of this job"), std::string::npos) << found->detail;
}

TEST(WaitTargets, PollNamesTheOneProcessBehindItsDescriptors) {
  const Pipe pipe;
  Child poller([&] {
    pipe.keep(0);
    std::array<pollfd, 2> polled{pollfd{.fd = pipe.ends[0], .events = POLLIN, .revents = 0},
                                 pollfd{.fd = -1, .events = POLLIN, .revents = 0}};
    ::poll(polled.data(), polled.size(), -1);
  });
  Child writer([&] {
    pipe.keep(1);
    hold();
  });
  ASSERT_TRUE(eventually(
      [&] { return sleeps_in(poller.pid(), SYS_poll) && sleeps_in(writer.pid(), SYS_pause); }));
  expect(wait_of({poller.pid(), writer.pid()}), "pipe", pid_target(writer.pid()));
}

TEST(WaitTargets, PollOverSeveralProcessesNamesThemInTheDetailOnly) {
  const Pipe first;
  const Pipe second;
  Child poller([&] {
    first.keep(0);
    second.keep(0);
    std::array<pollfd, 2> polled{pollfd{.fd = first.ends[0], .events = POLLIN, .revents = 0},
                                 pollfd{.fd = second.ends[0], .events = POLLIN, .revents = 0}};
    ::poll(polled.data(), polled.size(), -1);
  });
  const auto writer = [](const Pipe& mine, const Pipe& other) {
    mine.keep(1);
    ::close(other.ends[0]);
    ::close(other.ends[1]);
    hold();
  };
  Child one([&] { writer(first, second); });
  Child two([&] { writer(second, first); });
  ASSERT_TRUE(eventually([&] {
    return sleeps_in(poller.pid(), SYS_poll) && sleeps_in(one.pid(), SYS_pause) &&
           sleeps_in(two.pid(), SYS_pause);
  }));
  const auto found = wait_of({poller.pid(), one.pid(), two.pid()});
  expect(found, "pipe", "");
  EXPECT_NE(found->detail.find("rank 1"), std::string::npos) << found->detail;
  EXPECT_NE(found->detail.find("rank 2"), std::string::npos) << found->detail;
}

TEST(WaitTargets, SelectAndEpollAreReadAsWell) {
  const Pipe pipe;
  Child selecting([&] {
    pipe.keep(0);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(pipe.ends[0], &set);
    ::select(pipe.ends[0] + 1, &set, nullptr, nullptr, nullptr);
  });
  Child polling([&] {
    pipe.keep(0);
    const int queue = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{};
    event.events = EPOLLIN;
    ::epoll_ctl(queue, EPOLL_CTL_ADD, pipe.ends[0], &event);
    ::epoll_wait(queue, &event, 1, -1);
  });
  Child writer([&] {
    pipe.keep(1);
    hold();
  });
  ASSERT_TRUE(eventually([&] {
    const auto call = syscall_of(selecting.pid(), selecting.pid());
    const bool selects = call && (call->number == SYS_select || call->number == SYS_pselect6);
    return selects && sleeps_in(polling.pid(), SYS_epoll_wait) &&
           sleeps_in(writer.pid(), SYS_pause);
  }));
  expect(wait_of({selecting.pid(), writer.pid()}), "pipe", pid_target(writer.pid()));
  expect(wait_of({polling.pid(), writer.pid()}), "pipe", pid_target(writer.pid()));
}

TEST(WaitTargets, AUnixSocketLeadsToItsPeer) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  char byte = 0;
  Child reader([&] {
    ::close(ends[1]);
    [[maybe_unused]] const ssize_t got = ::recv(ends[0], &byte, 1, 0);
  });
  Child peer([&] {
    ::close(ends[0]);
    hold();
  });
  ::close(ends[0]);
  ::close(ends[1]);
  ASSERT_TRUE(eventually(
      [&] { return sleeps_in(reader.pid(), SYS_recvfrom) && sleeps_in(peer.pid(), SYS_pause); }));
  expect(wait_of({reader.pid(), peer.pid()}), "socket", pid_target(peer.pid()));
}

/// A listening socket on loopback and its address.
int listen_on_loopback(sockaddr_in& address) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  // The address types of the socket interface want this cast.
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ::bind(fd, generic, length);
  ::listen(fd, 4);
  ::getsockname(fd, generic, &length);
  return fd;
}

TEST(WaitTargets, ATcpSocketLeadsToTheProcessAtTheReversedAddress) {
  sockaddr_in address{};
  const int listener = listen_on_loopback(address);
  Child server([&] {
    [[maybe_unused]] const int accepted = ::accept(listener, nullptr, nullptr);
    hold();
  });
  char byte = 0;
  Child client([&] {
    ::close(listener);
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
    [[maybe_unused]] const ssize_t got = ::recv(fd, &byte, 1, 0);
  });
  ::close(listener);
  ASSERT_TRUE(eventually(
      [&] { return sleeps_in(client.pid(), SYS_recvfrom) && sleeps_in(server.pid(), SYS_pause); }));
  const auto found = wait_of({client.pid(), server.pid()});
  expect(found, "socket", pid_target(server.pid()));
  EXPECT_NE(found->detail.find(fmt::format("127.0.0.1:{}", ntohs(address.sin_port))),
            std::string::npos)
      << found->detail;
}

TEST(WaitTargets, OpeningAFifoNamesItsPath) {
  const Folder folder;
  const std::string path = folder.file("manifest");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  Child opener([&path] { [[maybe_unused]] const int fd = ::open(path.c_str(), O_RDONLY); });
  ASSERT_TRUE(eventually([&] { return sleeps_in(opener.pid(), SYS_openat); }));
  expect(wait_of({opener.pid()}), "fifo", "file:" + path);
}

TEST(WaitTargets, ReadingAFifoNamesItsWriterOrItsPath) {
  const Folder folder;
  const std::string path = folder.file("manifest");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  char byte = 0;
  Child reader([&] {
    const int fd = ::open(path.c_str(), O_RDONLY);
    [[maybe_unused]] const ssize_t got = ::read(fd, &byte, 1);
  });
  Child writer([&] {
    [[maybe_unused]] const int fd = ::open(path.c_str(), O_WRONLY);
    hold();
  });
  ASSERT_TRUE(eventually(
      [&] { return sleeps_in(reader.pid(), SYS_read) && sleeps_in(writer.pid(), SYS_pause); }));
  expect(wait_of({reader.pid(), writer.pid()}), "fifo", pid_target(writer.pid()));
  Child own_writer([&] {
    const int fd = ::open((path + "2").c_str(), O_RDWR | O_CREAT, 0600);
    ::close(fd);
    ::unlink((path + "2").c_str());
    ::mkfifo((path + "2").c_str(), 0600);
    const int both = ::open((path + "2").c_str(), O_RDWR);
    [[maybe_unused]] const ssize_t got = ::read(both, &byte, 1);
  });
  ASSERT_TRUE(eventually([&] { return sleeps_in(own_writer.pid(), SYS_read); }));
  expect(wait_of({own_writer.pid()}), "fifo", "file:" + path + "2");
}

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
  ASSERT_TRUE(eventually([&] { return sleeps_in(holder.pid(), SYS_pause); }));
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
  Child sibling([] { hold(); });  // inherited both ends as well
  ASSERT_TRUE(eventually(
      [&] { return sleeps_in(worker.pid(), SYS_read) && sleeps_in(sibling.pid(), SYS_pause); }));
  JobTree job = job_of({::getpid(), worker.pid(), sibling.pid()});
  job.processes[1].role = job.processes[2].role = JobRole::kDataLoaderWorker;
  const auto targets = wait_targets(job, {captured(worker.pid())});
  const auto found = targets.find({worker.pid(), worker.pid()});
  ASSERT_NE(found, targets.end());
  EXPECT_EQ(found->second.target, pid_target(::getpid()));
}

TEST(WaitTargets, WildArgumentsAreHarmless) {
  Child child([] { hold(); });
  ASSERT_TRUE(eventually([&] { return sleeps_in(child.pid(), SYS_pause); }));
  const JobTree job = job_of({child.pid()});
  for (const int call :
       {SYS_read, SYS_poll, SYS_select, SYS_epoll_wait, SYS_flock, SYS_futex, SYS_wait4, SYS_waitid,
        SYS_openat, SYS_open, SYS_clone, SYS_connect, 100000}) {
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
