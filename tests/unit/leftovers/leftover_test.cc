// SPDX-License-Identifier: Apache-2.0
// Real files and real processes in folders of the test.
#include "collector/leftovers/leftover.h"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/support/system_calls.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/sources/children.h"

namespace ddpdoctor::leftovers {
namespace {

using sources::Child;

/// With this scope everything is old enough.
Scope scope_of(const tests::TempDir& folder) {
  return {.shm = folder.path("shm"),
          .temporary = folder.path("tmp"),
          .uid = ::geteuid(),
          .now = static_cast<double>(::time(nullptr)),
          .youngest = 0};
}

std::optional<Leftover> named(const std::vector<Leftover>& found, std::string_view part) {
  const auto one = std::find_if(found.begin(), found.end(), [part](const Leftover& each) {
    return each.name.find(part) != std::string::npos;
  });
  return one == found.end() ? std::nullopt : std::optional(*one);
}

State state_of(const Scope& scope, std::string_view part) {
  const auto found = named(segments(scope), part);
  EXPECT_TRUE(found) << part;
  return found ? found->state : State::kUnknown;
}

pid_t dead_pid() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  return child;
}

TEST(Segments, NobodyUsesAreFreeAndRemoved) {
  const tests::TempDir folder;
  const std::string name = fmt::format("shm/torch_{}_5_0", dead_pid());
  folder.write(name, "12345");
  const Scope scope = scope_of(folder);
  const auto found = named(segments(scope), "torch_");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->state, State::kFree) << found->why;
  EXPECT_EQ(found->bytes, 5U);
  EXPECT_TRUE(found->creator);
  ASSERT_TRUE(remove(*found, scope));
  EXPECT_TRUE(segments(scope).empty());
}

TEST(Segments, MappedByALiveProcessAreUsedAlsoWithoutADescriptor) {
  const tests::TempDir folder;
  const std::string path = folder.write("shm/psm_abc", std::string(4096, 'x'));
  const Scope scope = scope_of(folder);
  {
    const Child user([&path] {
      const int fd = ::open(path.c_str(), O_RDWR);
      ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
      ::close(fd);
      ::pause();
    });
    ASSERT_TRUE(sources::eventually([&] { return sources::sleeps_in(user.pid(), test::kPause); }));
    const auto found = named(segments(scope), "psm_abc");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->state, State::kUsed);
    EXPECT_EQ(found->users, std::vector<pid_t>{user.pid()});
  }
  EXPECT_EQ(state_of(scope, "psm_abc"), State::kFree);
}

TEST(Segments, HeldByADescriptorAreUsed) {
  const tests::TempDir folder;
  const std::string path = folder.write("shm/sem.mp-x", "s");
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(state_of(scope_of(folder), "sem.mp-x"), State::kUsed);
  ::close(fd);
  EXPECT_EQ(state_of(scope_of(folder), "sem.mp-x"), State::kFree);
}

TEST(Segments, TakenIntoUseAfterTheListAreLeftAlone) {
  const tests::TempDir folder;
  const std::string path = folder.write("shm/torch_999999999_1_0", "x");
  const Scope scope = scope_of(folder);
  const auto before = named(segments(scope), "torch_");
  ASSERT_TRUE(before);
  ASSERT_EQ(before->state, State::kFree) << before->why;
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_FALSE(remove(*before, scope));
  ::close(fd);
  // Another file of that name is not the file that was listed.
  folder.write("shm/other", "y");
  std::filesystem::rename(folder.path("shm/other"), path);
  EXPECT_TRUE(remove(*before, scope));
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(Segments, OfALivingMakerOrOfAMomentAgoAreUsed) {
  const tests::TempDir folder;
  folder.write(fmt::format("shm/torch_{}_5_0", ::getpid()), "x");
  EXPECT_EQ(state_of(scope_of(folder), "torch_"), State::kUsed);
  folder.write("shm/psm_young", "x");
  Scope scope = scope_of(folder);
  scope.youngest = 3600;
  EXPECT_EQ(state_of(scope, "psm_young"), State::kUsed);
}

TEST(Segments, OfOtherUsersAreListedAndNeverRemoved) {
  const tests::TempDir folder;
  folder.write("shm/psm_x", "x");
  Scope scope = scope_of(folder);
  ++scope.uid;
  const auto found = named(segments(scope), "psm_x");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->state, State::kForeign);
  EXPECT_FALSE(remove(*found, scope));
  EXPECT_TRUE(std::filesystem::exists(found->name));
}

TEST(Segments, StrangersNamesAndLinksAreNotLookedAt) {
  const tests::TempDir folder;
  folder.write("shm/important", "x");
  std::filesystem::create_symlink(folder.path("shm/important"), folder.path("shm/torch_1_1_1"));
  EXPECT_TRUE(segments(scope_of(folder)).empty());
}

TEST(Segments, OfMpiAreFreeAsSoonAsNobodyMapsThem) {
  const tests::TempDir folder;
  folder.write("shm/vader_segment.node1.0.6e2b0001.1", "x");
  folder.write("shm/mpich_shm_2e9c6722_0", "x");
  const Scope scope = scope_of(folder);
  EXPECT_EQ(state_of(scope, "vader_segment"), State::kFree);
  EXPECT_EQ(state_of(scope, "mpich_shm"), State::kFree);
}

TEST(Segments, ANamedSemaphoreOfAProgramIsNotTaken) {
  const tests::TempDir folder;
  folder.write("shm/sem.database", "x");
  EXPECT_EQ(state_of(scope_of(folder), "sem.database"), State::kUnknown);
}

TEST(Spools, OfADeadRunAreFreeUnlessSomethingElseLiesThere) {
  const tests::TempDir folder;
  folder.write("tmp/ddpdoctor-abcdef/12-34.ring", "x");
  folder.write("tmp/ddpdoctor-qwerty/notes.txt", "x");
  folder.write("tmp/ddpdoctor-toolong/1-2.ring", "x");
  const Scope scope = scope_of(folder);
  const auto found = spools(scope);
  ASSERT_EQ(found.size(), 1U);
  if (found.front().state == State::kUsed) {
    GTEST_SKIP() << "a ddpdoctor runs on this machine: " << found.front().why;
  }
  EXPECT_EQ(found.front().state, State::kFree) << found.front().why;
  ASSERT_TRUE(remove(found.front(), scope));
  EXPECT_FALSE(std::filesystem::exists(folder.path("tmp/ddpdoctor-abcdef")));
}

TEST(Spools, ThatALiveProcessRecordsToAreUsed) {
  const tests::TempDir folder;
  folder.write("tmp/ddpdoctor-abcdef/12-34.ring", "x");
  const std::string spool = "DDPDOCTOR_SPOOL=" + folder.path("tmp/ddpdoctor-abcdef");
  const Child rank([&spool] { sources::run({"env", spool, "sleep", "60"}); });
  ASSERT_TRUE(sources::eventually([&] { return sources::asleep(rank.pid()); }));
  const auto found = spools(scope_of(folder));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().state, State::kUsed);
}

/// A row of a process table.
sources::ProcessRow row(pid_t pid, pid_t ppid, std::vector<std::string> command,
                        std::map<std::string, std::string> environment = {}) {
  sources::ProcessRow out;
  out.pid = pid;
  out.ppid = ppid;
  out.comm = command.front();
  out.command = std::move(command);
  out.environment = std::move(environment);
  out.state = 'S';
  out.uid = ::geteuid();
  out.complete = true;
  return out;
}

const std::map<std::string, std::string> kRank{
    {"RANK", "1"},           {"WORLD_SIZE", "2"},
    {"LOCAL_RANK", "1"},     {"MASTER_ADDR", "localhost"},
    {"MASTER_PORT", "4000"}, {"TORCHELASTIC_RUN_ID", "none"}};

std::vector<Leftover> orphans_of(const std::vector<sources::ProcessRow>& rows) {
  sources::ProcessTable table;
  for (const sources::ProcessRow& each : rows) {
    table[each.pid] = each;
  }
  sources::Candidates candidates(std::move(table));
  return orphans(candidates, {.uid = ::geteuid()});
}

TEST(Orphans, ARankOfADeadLauncherIsOne) {
  const auto found = orphans_of({row(1, 0, {"init"}), row(70, 1, {"python", "train.py"}, kRank)});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().state, State::kFree);
  EXPECT_EQ(found.front().rank, 1);
}

TEST(Orphans, ARankBelowItsLauncherIsNone) {
  EXPECT_TRUE(orphans_of({row(1, 0, {"init"}), row(60, 1, {"torchrun", "train.py"}),
                          row(70, 60, {"python", "train.py"}, kRank)})
                  .empty());
  EXPECT_TRUE(orphans_of({row(1, 0, {"init"}), row(60, 1, {"python", "launch.py"}),
                          row(65, 60, {"bash", "rank.sh"}, kRank),
                          row(70, 65, {"python", "train.py"}, kRank)})
                  .empty());
}

TEST(Orphans, ALauncherThatIsTheContainersInitIsALauncher) {
  EXPECT_TRUE(orphans_of({row(1, 0, {"python", "-m", "torch.distributed.run", "train.py"}),
                          row(70, 1, {"python", "train.py"}, kRank)})
                  .empty());
}

TEST(Orphans, RanksStartedByHandAreNotTouched) {
  auto environment = kRank;
  environment.erase("TORCHELASTIC_RUN_ID");
  EXPECT_TRUE(
      orphans_of({row(1, 0, {"init"}), row(70, 1, {"python", "train.py"}, environment)}).empty());
}

TEST(Orphans, ADataLoaderWorkerOfADeadRankIsOne) {
  auto worker = row(71, 1, {"python", "train.py"});
  worker.comm = "pt_data_worker";
  EXPECT_EQ(orphans_of({row(1, 0, {"init"}), worker}).size(), 1U);
  worker.ppid = 70;
  EXPECT_TRUE(
      orphans_of({row(1, 0, {"init"}), row(70, 1, {"python", "train.py"}), worker}).empty());
}

TEST(Orphans, OfAnotherUserAreForeign) {
  auto rank = row(70, 1, {"python", "train.py"}, kRank);
  ++rank.uid;
  const auto found = orphans_of({row(1, 0, {"init"}), rank});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().state, State::kForeign);
}

TEST(Remove, AProcessWhoseNumberIsSomebodyElsesNowIsNotHit) {
  const Child bystander([] { ::pause(); });
  Leftover gone;
  gone.kind = Kind::kProcess;
  gone.name = fmt::format("process {}", bystander.pid());
  gone.state = State::kFree;
  gone.pid = bystander.pid();
  gone.start_ticks = 1;
  EXPECT_TRUE(remove(gone, scope_here(0)));
  EXPECT_EQ(::kill(bystander.pid(), 0), 0);
  const auto alive = sources::read_process(bystander.pid());
  ASSERT_TRUE(alive);
  EXPECT_NE(alive->state, 'Z');
}

}  // namespace
}  // namespace ddpdoctor::leftovers
