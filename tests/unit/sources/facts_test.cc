// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/facts/facts.h"

#include <algorithm>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/support/system_calls.h"
#include "tests/unit/sources/children.h"

namespace ddpdoctor::sources {
namespace {

/// Facts of a kind about a process (0 = any).
std::vector<RawFact> facts_of(const std::vector<RawFact>& facts, const std::string& kind,
                              pid_t pid = 0) {
  std::vector<RawFact> found;
  std::copy_if(facts.begin(), facts.end(), std::back_inserter(found), [&](const RawFact& fact) {
    return fact.kind == kind && (pid == 0 || fact.pid == pid);
  });
  return found;
}

template <typename T>
T field(const RawFact& fact, const std::string& name) {
  const auto found = fact.fields.find(name);
  if (found == fact.fields.end() || !std::holds_alternative<T>(found->second)) {
    ADD_FAILURE() << "no such field: " << name;
    return {};
  }
  return std::get<T>(found->second);
}

void hold() {
  while (true) {
    ::pause();
  }
}

TEST(Facts, AZombieIsAnExitWithItsSignal) {
  const Folder folder;
  Child parent([&folder] {
    const pid_t child = ::fork();
    if (child == 0) {
      ::kill(::getpid(), SIGKILL);
    }
    write_file(folder.file("pid"), std::to_string(child));
    hold();
  });
  ASSERT_TRUE(eventually([&] { return sleeps_in(parent.pid(), test::kPause); }));
  const pid_t child = number<pid_t>(*read_file(folder.file("pid"))).value_or(0);
  ASSERT_TRUE(eventually([&] { return read_process(child)->state == 'Z'; }));
  const auto exits = facts_of(surroundings(job_of({parent.pid(), child}), {}), "exit", child);
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_EQ(exits[0].rank, 1);
  EXPECT_EQ(field<std::int64_t>(exits[0], "signal"), SIGKILL);
  EXPECT_EQ(field<std::string>(exits[0], "signal_name"), "SIGKILL");
  EXPECT_EQ(field<std::int64_t>(exits[0], "parent_pid"), parent.pid());
  EXPECT_TRUE(field<bool>(exits[0], "zombie"));
}

TEST(Facts, AForkWithoutExecIsToldFromAProgramStartedAnew) {
  const Folder folder;
  Child parent([&folder] {
    const pid_t forked = ::fork();
    if (forked == 0) {
      hold();
    }
    const pid_t anew = ::fork();
    if (anew == 0) {
      run({"sleep", "1000"});
    }
    write_file(folder.file("pids"), fmt::format("{} {}", forked, anew));
    hold();
  });
  ASSERT_TRUE(eventually([&] { return sleeps_in(parent.pid(), test::kPause); }));
  const std::string text = *read_file(folder.file("pids"));
  const pid_t forked = number<pid_t>(words(text)[0]).value_or(0);
  const pid_t anew = number<pid_t>(words(text)[1]).value_or(0);
  ASSERT_TRUE(eventually([&] { return asleep(anew); }));
  const auto facts = surroundings(job_of({parent.pid(), forked, anew}), {});
  ASSERT_EQ(facts_of(facts, "fork", forked).size(), 1U);
  EXPECT_EQ(field<std::int64_t>(facts_of(facts, "fork", forked)[0], "parent_pid"), parent.pid());
  EXPECT_TRUE(facts_of(facts, "fork", anew).empty());
}

TEST(Facts, DescriptorsAreCountedAgainstTheirLimit) {
  const auto facts = facts_of(surroundings(job_of({::getpid()}), {}), "fd-usage");
  ASSERT_EQ(facts.size(), 1U);
  const auto open = static_cast<std::int64_t>(numbered_entries("/proc/self/fd").size());
  EXPECT_NEAR(static_cast<double>(field<std::int64_t>(facts[0], "count")),
              static_cast<double>(open), 4);
  EXPECT_GT(field<std::int64_t>(facts[0], "limit"), 0);
  EXPECT_FALSE(field<std::vector<std::string>>(facts[0], "kinds").empty());
}

TEST(Facts, ASegmentKnowsItsCreatorAndWhoMapsIt) {
  Child child([] {
    const std::string name = fmt::format("/torch_{}_12345_0", ::getpid());
    const int fd = ::shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
    if (::ftruncate(fd, 8192) != 0) {
      ::_exit(1);
    }
    ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    hold();
  });
  const std::string name = fmt::format("/torch_{}_12345_0", child.pid());
  ASSERT_TRUE(eventually([&] { return sleeps_in(child.pid(), test::kPause); }));
  const auto facts = surroundings(job_of({child.pid()}), {});
  ::shm_unlink(name.c_str());
  const auto segments = facts_of(facts, "shm-segment", child.pid());
  ASSERT_EQ(segments.size(), 1U);
  EXPECT_EQ(field<std::string>(segments[0], "path"), "/dev/shm" + name);
  EXPECT_EQ(field<std::int64_t>(segments[0], "bytes"), 8192);
  EXPECT_TRUE(field<bool>(segments[0], "creator_alive"));
  EXPECT_TRUE(field<bool>(segments[0], "in_use"));
  const auto usage = facts_of(facts, "shm-usage");
  ASSERT_EQ(usage.size(), 1U);
  EXPECT_GE(field<std::int64_t>(usage[0], "bytes_total"),
            field<std::int64_t>(usage[0], "bytes_free"));
  EXPECT_GE(field<std::int64_t>(usage[0], "segments"), 1);
}

TEST(Facts, SegmentsAreFoundInTheMapsThatTheCaptureHasRead) {
  const std::string name = fmt::format("/torch_{}_778_0", ::getpid());
  const int made = ::shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::ftruncate(made, 1 << 30), 0);
  ::close(made);
  stacks::MapsTable maps;
  const auto kept =
      stacks::Maps::parse(fmt::format("1000-2000 rw-s 00000000 00:17 12 /dev/shm{}\n"
                                      "2000-3000 rw-s 00000000 00:17 13 /dev/shm/torch_1_2_3 "
                                      "(deleted)\n",
                                      name));
  ASSERT_TRUE(kept);
  maps.keep(::getpid(), *kept);
  const auto segments =
      facts_of(surroundings(job_of({::getpid()}), {}, &maps), "shm-segment", ::getpid());
  ::shm_unlink(name.c_str());
  ASSERT_EQ(segments.size(), 1U);
  EXPECT_TRUE(field<bool>(segments[0], "in_use"));
}

TEST(Facts, ALeakedSegmentHasNoCreatorAndNoUser) {
  pid_t gone = 0;
  {
    Child child([] { ::_exit(0); });
    gone = child.pid();
  }
  const std::string name = fmt::format("/torch_{}_777_0", gone);
  const int made = ::shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
  // None of its pages exists: it counts as one of the largest, which are reported.
  ASSERT_EQ(::ftruncate(made, 1 << 30), 0);
  ::close(made);
  const auto segments = facts_of(surroundings(job_of({::getpid()}), {}), "shm-segment", gone);
  ::shm_unlink(name.c_str());
  ASSERT_EQ(segments.size(), 1U);
  EXPECT_FALSE(field<bool>(segments[0], "creator_alive"));
  EXPECT_FALSE(field<bool>(segments[0], "in_use"));
}

TEST(Facts, AFileLockNamesHolderAndWaiter) {
  const Folder folder;
  const std::string path = folder.file("index");
  write_file(path, "");
  Child holder([&] {
    ::flock(::open(path.c_str(), O_RDWR), LOCK_EX);
    hold();
  });
  ASSERT_TRUE(eventually([&] { return sleeps_in(holder.pid(), test::kPause); }));
  Child waiter([&] { ::flock(::open(path.c_str(), O_RDWR), LOCK_EX); });
  ASSERT_TRUE(eventually([&] { return sleeps_in(waiter.pid(), SYS_flock); }));
  const auto locks = facts_of(surroundings(job_of({waiter.pid()}), {}), "file-lock", waiter.pid());
  ASSERT_EQ(locks.size(), 1U);
  EXPECT_EQ(field<std::int64_t>(locks[0], "holder_pid"), holder.pid());
  EXPECT_EQ(field<std::int64_t>(locks[0], "waiting_pid"), waiter.pid());
  EXPECT_EQ(field<std::string>(locks[0], "lock"), "flock");
  EXPECT_TRUE(field<bool>(locks[0], "holder_alive"));
  EXPECT_FALSE(field<bool>(locks[0], "holder_in_job"));
  const std::string named = field<std::string>(locks[0], "path");
  EXPECT_TRUE(named == path || named.empty())
      << named;  // kernels before 5.14 do not show inodes of descriptors
}

/// A process that polls a baton at `path` ("" = the frame does not show it).
std::vector<RawFact> baton_facts(pid_t pid, const std::string& path) {
  stacks::ProcessStacks stacks = captured(pid);
  stacks::Frame frame;
  frame.language = stacks::Language::kPython;
  frame.function = "FileBaton.wait";
  frame.file = "/x/torch/utils/file_baton.py";
  if (!path.empty()) {
    frame.locals = {{"self", fmt::format("<FileBaton lock_file_path='{}'>", path)}};
  }
  stacks.threads[0].frames = {frame};
  return facts_of(surroundings(job_of({pid}), {stacks}), "lock-file");
}

/// The fact about a soft lock with this text for which a process waits.
RawFact soft_lock_fact(const std::string& text) {
  const Folder folder;
  const std::string path = folder.file("soft.lock");
  write_file(path, text);
  Child waiter([] { hold(); });
  EXPECT_TRUE(eventually([&] { return sleeps_in(waiter.pid(), test::kPause); }));
  stacks::ProcessStacks stacks = captured(waiter.pid());
  stacks::Frame frame;
  frame.language = stacks::Language::kPython;
  frame.function = "BaseFileLock.acquire";
  frame.file = "/x/filelock/_api.py";
  frame.locals = {{"self", "<SoftFileLock at 0x7f>"}, {"lock_filename", "'" + path + "'"}};
  stacks.threads[0].frames = {frame};
  const auto facts = facts_of(surroundings(job_of({waiter.pid()}), {stacks}), "lock-file");
  return facts.empty() ? RawFact{} : facts[0];
}

TEST(Facts, ASoftLockIsHeldByTheLivingProcessThatItsFileNames) {
  const RawFact held = soft_lock_fact(fmt::format("{}\n", ::getpid()));
  EXPECT_TRUE(field<bool>(held, "named_alive"));
  EXPECT_TRUE(field<bool>(held, "held"));
  EXPECT_EQ(field<std::int64_t>(held, "holder_pid"), ::getpid());
}

TEST(Facts, ASoftLockOfADeadProcessIsHeldByNobodyAndOfAnotherHostByWhoKnows) {
  const RawFact dead = soft_lock_fact("4194303\n");
  EXPECT_FALSE(field<bool>(dead, "named_alive"));
  EXPECT_FALSE(field<bool>(dead, "held"));
  const RawFact elsewhere = soft_lock_fact("4194303\nno-such-host.invalid\n");
  EXPECT_EQ(field<std::int64_t>(elsewhere, "named_pid"), 4194303);
  EXPECT_EQ(elsewhere.fields.count("named_alive"), 0U);
  EXPECT_EQ(soft_lock_fact(std::string(5000, 'x')).fields.count("named_pid"), 0U);
}

TEST(Facts, ALockFileOlderThanTheJobThatNobodyHoldsIsSeenAsSuch) {
  const Folder folder;
  const std::string path = folder.file("lock");
  write_file(path, "");
  const std::array<timespec, 2> old{timespec{.tv_sec = 1'600'000'000, .tv_nsec = 0},
                                    timespec{.tv_sec = 1'600'000'000, .tv_nsec = 0}};
  ::utimensat(AT_FDCWD, path.c_str(), old.data(), 0);
  Child waiter([] { hold(); });
  ASSERT_TRUE(eventually([&] { return sleeps_in(waiter.pid(), test::kPause); }));
  const auto facts = baton_facts(waiter.pid(), path);
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_TRUE(field<bool>(facts[0], "exists"));
  EXPECT_TRUE(field<bool>(facts[0], "older_than_job"));
  EXPECT_FALSE(field<bool>(facts[0], "held"));
  EXPECT_GT(field<double>(facts[0], "age_seconds"), 1e6);
  EXPECT_EQ(field<std::string>(facts[0], "protocol"), "existence");
  EXPECT_EQ(field<std::vector<std::string>>(facts[0], "waiting_pids"),
            std::vector<std::string>{std::to_string(waiter.pid())});
}

TEST(Facts, ALockFileThatALiveProcessHasOpenIsHeld) {
  const Folder folder;
  const std::string path = folder.file("lock");
  write_file(path, "");
  Child builder([&] {
    [[maybe_unused]] const int fd = ::open(path.c_str(), O_RDWR);
    hold();
  });
  Child waiter([] { hold(); });
  ASSERT_TRUE(eventually([&] {
    return sleeps_in(waiter.pid(), test::kPause) && sleeps_in(builder.pid(), test::kPause);
  }));
  const auto facts = baton_facts(waiter.pid(), path);
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_TRUE(field<bool>(facts[0], "held"));
  EXPECT_EQ(field<std::int64_t>(facts[0], "holder_pid"), builder.pid());
  EXPECT_FALSE(field<bool>(facts[0], "older_than_job") &&
               field<double>(facts[0], "age_seconds") < 0);
}

TEST(Facts, ABatonIsFoundInTorchsBuildFolderWhenTheFrameDoesNotTell) {
  const Folder folder;
  ASSERT_EQ(::mkdir(folder.file("ops").c_str(), 0700), 0);
  write_file(folder.file("ops/lock"), "");
  Child waiter([&folder] {
    ::setenv("TORCH_EXTENSIONS_DIR", folder.path().c_str(), 1);
    run({"sleep", "1000"});
  });
  ASSERT_TRUE(eventually([&] { return asleep(waiter.pid()); }));
  const auto facts = baton_facts(waiter.pid(), "");
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_EQ(field<std::string>(facts[0], "path"), folder.file("ops/lock"));
}

/// A process with MASTER_ADDR and MASTER_PORT in its environment.
void run_with_master(int port) {
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  ::setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
  run({"sleep", "1000"});
}

TEST(Facts, WhoListensOnTheMasterPortIsNamed) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(fd, generic, length), 0);
  ASSERT_EQ(::getsockname(fd, generic, &length), 0);
  const int port = ntohs(address.sin_port);
  Child rank([port] { run_with_master(port); });
  ASSERT_TRUE(eventually([&] { return asleep(rank.pid()); }));
  auto facts = facts_of(surroundings(job_of({rank.pid()}), {}), "listen");
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_EQ(field<std::int64_t>(facts[0], "port"), port);
  EXPECT_TRUE(field<bool>(facts[0], "local"));
  EXPECT_FALSE(field<bool>(facts[0], "listening"));
  ASSERT_EQ(::listen(fd, 1), 0);
  facts = facts_of(surroundings(job_of({rank.pid()}), {}), "listen");
  ::close(fd);
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_TRUE(field<bool>(facts[0], "listening"));
  EXPECT_EQ(field<std::int64_t>(facts[0], "listener_pid"), ::getpid());
  EXPECT_FALSE(field<bool>(facts[0], "listener_in_job"));
}

TEST(Facts, AThreadPoolIsSeenByWhereItsThreadsStarted) {
  stacks::ProcessStacks stacks;
  stacks.pid = ::getpid();
  for (int i = 0; i < 3; ++i) {
    stacks::ThreadStack& thread = stacks.threads.emplace_back();
    thread.tid = ::getpid() + i;
    stacks::Frame team;
    team.module = "libgomp.so.1";
    stacks::Frame start;
    start.module = "libc.so.6";
    thread.frames = {team, start, start};
  }
  const auto facts = facts_of(surroundings(job_of({::getpid()}), {stacks}), "openmp-team");
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_EQ(field<std::string>(facts[0], "library"), "libgomp.so.1");
  // The main thread does not belong to the pool.
  EXPECT_EQ(field<std::int64_t>(facts[0], "threads"), 2);
}

TEST(Facts, VersionsThatDifferAreToldForEveryRank) {
  Child other([] { hold(); });
  stacks::ProcessStacks first;
  first.pid = ::getpid();
  first.torch = stacks::TorchState{};
  first.torch->version = "2.13.0+cpu";
  stacks::ProcessStacks second = first;
  second.pid = other.pid();
  const JobTree job = job_of({::getpid(), other.pid()});
  auto facts = facts_of(surroundings(job, {first, second}), "library-version");
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_FALSE(facts[0].rank);
  EXPECT_FALSE(field<bool>(facts[0], "differs"));
  second.torch->version = "2.12.0";
  facts = facts_of(surroundings(job, {first, second}), "library-version");
  ASSERT_EQ(facts.size(), 2U);
  EXPECT_TRUE(field<bool>(facts[0], "differs"));
}

TEST(Facts, AnEmptyJobHasNone) {
  EXPECT_TRUE(surroundings(JobTree{}, {}).empty());
}

}  // namespace
}  // namespace ddpdoctor::sources
