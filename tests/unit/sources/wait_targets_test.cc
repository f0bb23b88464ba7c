// SPDX-License-Identifier: Apache-2.0
// Real pairs of processes: one blocks, the other is what it waits for.
#include <mutex>
#include <poll.h>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "collector/sources/waits/targets.h"
#include "tests/support/system_calls.h"
#include "tests/unit/sources/waiting.h"

namespace ddpdoctor::sources {
namespace {

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
      [&] { return sleeps_in(reader.pid(), SYS_read) && sleeps_in(writer.pid(), test::kPause); }));
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
      [&] { return sleeps_in(writer.pid(), SYS_write) && sleeps_in(reader.pid(), test::kPause); }));
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
  const auto found = wait_of({reader.pid()});  // this test holds the write end
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
      [&] { return sleeps_in(poller.pid(), SYS_poll) && sleeps_in(writer.pid(), test::kPause); }));
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
    return sleeps_in(poller.pid(), SYS_poll) && sleeps_in(one.pid(), test::kPause) &&
           sleeps_in(two.pid(), test::kPause);
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
    return selects && sleeps_in(polling.pid(), test::kEpollWait) &&
           sleeps_in(writer.pid(), test::kPause);
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
  ASSERT_TRUE(eventually([&] {
    return sleeps_in(reader.pid(), SYS_recvfrom) && sleeps_in(peer.pid(), test::kPause);
  }));
  expect(wait_of({reader.pid(), peer.pid()}), "socket", pid_target(peer.pid()));
}

/// A listening socket on loopback and its address.
int listen_on_loopback(sockaddr_in& address) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  // The socket interface requires this cast.
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
  ASSERT_TRUE(eventually([&] {
    return sleeps_in(client.pid(), SYS_recvfrom) && sleeps_in(server.pid(), test::kPause);
  }));
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
      [&] { return sleeps_in(reader.pid(), SYS_read) && sleeps_in(writer.pid(), test::kPause); }));
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

double seconds_told(const std::optional<WaitTarget>& found) {
  return found && found->kind == "timer" ? found->limit.value_or(-1) : -1;
}

TEST(WaitTargets, ASleepUntilATimeSaysWhatIsLeft) {
  Child sleeper([] {
    timespec until{};
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 1000;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  });
  ASSERT_TRUE(eventually([&] { return sleeps_in(sleeper.pid(), SYS_clock_nanosleep); }));
  const double left = seconds_told(wait_of({sleeper.pid()}));
  EXPECT_GT(left, 500);
  EXPECT_LE(left, 1000);
}

TEST(WaitTargets, ASleepOfALengthSaysTheLength) {
  Child sleeper([] {
    timespec length{.tv_sec = 300, .tv_nsec = 0};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &length, nullptr);
  });
  ASSERT_TRUE(eventually([&] { return sleeps_in(sleeper.pid(), SYS_clock_nanosleep); }));
  EXPECT_EQ(seconds_told(wait_of({sleeper.pid()})), 300);
}

TEST(WaitTargets, AnArgumentThatIsOverwrittenIsOfASleepThatEnds) {
  auto* const length = static_cast<timespec*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(length, MAP_FAILED);
  *length = {.tv_sec = 300, .tv_nsec = 0};
  {
    Child sleeper(
        [length] { ::syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, length, nullptr); });
    ASSERT_TRUE(eventually([&] { return sleeps_in(sleeper.pid(), SYS_clock_nanosleep); }));
    length->tv_sec = time_t{1} << 47;  // left on the stack by another call
    EXPECT_EQ(seconds_told(wait_of({sleeper.pid()})), 0);
  }
  ::munmap(length, 4096);
}

TEST(WaitTargets, ALockWithATimeoutSaysHowLongItWaitsAtMost) {
  Child waiter([] {
    std::uint32_t word = 0;
    const timespec length{.tv_sec = 300, .tv_nsec = 0};
    ::syscall(SYS_futex, &word, FUTEX_WAIT, 0, &length, nullptr, 0);
  });
  ASSERT_TRUE(eventually([&] { return sleeps_in(waiter.pid(), SYS_futex); }));
  const auto found = wait_of({waiter.pid()});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->limit, 300);
}

TEST(WaitTargets, APollWithATimeoutSaysHowLongItWaitsAtMost) {
  for (const int timeout : {60000, -1}) {
    const Pipe pipe;
    Child reader([&] {
      pollfd one{.fd = pipe.ends[0], .events = POLLIN, .revents = 0};
      ::poll(&one, 1, timeout);
    });
    ASSERT_TRUE(eventually([&] { return sleeps_in(reader.pid(), SYS_poll); }));
    const auto found = wait_of({reader.pid()});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->kind, "pipe");
    EXPECT_EQ(found->limit, timeout < 0 ? std::nullopt : std::optional(60.0));
  }
}

TEST(WaitTargets, ASelectWithoutDescriptorsIsASleep) {
  Child sleeper([] {
    timespec length{.tv_sec = 200, .tv_nsec = 0};
    ::pselect(0, nullptr, nullptr, nullptr, &length, nullptr);
  });
  ASSERT_TRUE(eventually([&] { return sleeps_in(sleeper.pid(), SYS_pselect6); }));
  EXPECT_EQ(seconds_told(wait_of({sleeper.pid()})), 200);
}

}  // namespace
}  // namespace ddpdoctor::sources
