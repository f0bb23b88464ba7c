// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/processes/process_table.h"

#include <chrono>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/unit/sources/children.h"

namespace ddpdoctor::sources {
namespace {

constexpr const char* kStat =
    "77 (python3) S 70 77 70 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 6 0 12345 1000 200 "
    "18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 1 0 0 0 0 0 11 12 13 140000 140010 "
    "140020 140030 0\n";

TEST(ParseStat, ReadsTheFieldsByTheirNumbers) {
  const auto row = parse_stat(kStat);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->pid, 77);
  EXPECT_EQ(row->ppid, 70);
  EXPECT_EQ(row->comm, "python3");
  EXPECT_EQ(row->state, 'S');
  EXPECT_EQ(row->session, 70);
  EXPECT_EQ(row->threads, 6);
  EXPECT_EQ(row->start_ticks, 12345U);
  EXPECT_EQ(row->arguments_at, 140000U);
  EXPECT_NEAR(row->cpu_seconds, 300.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)), 1e-9);
  EXPECT_FALSE(row->exit_code);
}

TEST(ParseStat, CommMayHoldParenthesesAndLookLikeFields) {
  std::string text = kStat;
  text.replace(text.find("python3"), 7, ") R 1 (x) ");
  const auto row = parse_stat(text);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->comm, ") R 1 (x) ");
  EXPECT_EQ(row->ppid, 70);
}

TEST(ParseStat, RefusesTextThatIsCutOrForeign) {
  EXPECT_FALSE(parse_stat(""));
  EXPECT_FALSE(parse_stat("77 (python3"));
  EXPECT_FALSE(parse_stat(")("));
  EXPECT_FALSE(parse_stat("77 (python3) S 70 77 70"));
  EXPECT_FALSE(
      parse_stat("77 (python3) SLEEP 70 77 70 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 6 0 12345"));
  EXPECT_FALSE(parse_stat(std::string(100000, '(')));
}

TEST(ProcessTable, HoldsThisProcessAndItsParent) {
  const ProcessTable table = read_process_table();
  ASSERT_TRUE(table.contains(::getpid()));
  EXPECT_TRUE(table.contains(::getppid()));
  const ProcessRow& row = table.at(::getpid());
  EXPECT_EQ(row.uid, ::getuid());
  ASSERT_FALSE(row.command.empty());
  EXPECT_NE(row.command.front().find("test_sources"), std::string::npos);
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_GT(row.start_time, now - 600);
  EXPECT_LT(row.start_time, now + 1);
}

TEST(ProcessTable, CompletesARowWithEnvironmentAndExe) {
  Child child([] {
    ::setenv("RANK", "3", 1);
    ::setenv("EMPTY", "", 1);
    run({"sleep", "1000"});
  });
  ASSERT_TRUE(eventually([&] { return asleep(child.pid()); }));
  ProcessRow row = *read_process(child.pid());
  EXPECT_TRUE(row.environment.empty());
  complete(row);
  EXPECT_EQ(row.environment["RANK"], "3");
  EXPECT_EQ(row.environment.at("EMPTY"), "");
  EXPECT_TRUE(row.exe.ends_with("sleep") || row.exe.ends_with("coreutils") ||
              row.exe.ends_with("busybox"))
      << row.exe;
  EXPECT_EQ(row.problem, "");
  EXPECT_EQ(row.inner_pid, child.pid());
}

TEST(ProcessTable, AZombieTellsHowItEnded) {
  Child parent([] {
    if (::fork() == 0) {
      ::_exit(7);
    }
    if (::fork() == 0) {
      ::raise(SIGKILL);
    }
    ::pause();
  });
  std::vector<int> codes;
  ASSERT_TRUE(eventually([&] {
    codes.clear();
    for (const auto& [pid, row] : read_process_table()) {
      if (row.ppid == parent.pid() && row.state == 'Z') {
        codes.push_back(row.exit_code.value_or(-1));
      }
    }
    return codes.size() == 2;
  }));
  EXPECT_EQ(WEXITSTATUS(codes[0]), 7);
  EXPECT_TRUE(WIFSIGNALED(codes[1]));
  EXPECT_EQ(WTERMSIG(codes[1]), SIGKILL);
}

TEST(ProcFile, HostileTextIsCutAtNothingButItsOwnMarks) {
  EXPECT_EQ(nul_separated(std::string_view("a\0\0b", 4)), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_TRUE(nul_separated("").empty());
  EXPECT_TRUE(nul_separated(std::string_view("\0", 1)).empty());
  EXPECT_EQ(words("  a\tb \n c"), (std::vector<std::string_view>{"a", "b", "c"}));
  EXPECT_EQ(status_field("Name:\tx\nTracerPid:\t9\n", "TracerPid"), "9");
  EXPECT_FALSE(status_field("Name:\tTracerPid:\t9", "TracerPid"));
  EXPECT_FALSE(number<int>("12x"));
  EXPECT_FALSE(number<int>(""));
  EXPECT_FALSE(number<int>("99999999999999999999"));
}

TEST(ProcFile, ReadingAFifoDoesNotCatchUs) {
  const Folder folder;
  ASSERT_EQ(::mkfifo(folder.file("fifo").c_str(), 0600), 0);
  EXPECT_EQ(read_file(folder.file("fifo")).value_or(""), "");
}

}  // namespace
}  // namespace ddpdoctor::sources
