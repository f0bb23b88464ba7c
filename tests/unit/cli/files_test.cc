// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "cli/file_writer.h"
#include "cli/renderings.h"
#include "cli/usage.h"
#include "tests/support/temp_dir.h"

namespace ddpdoctor::cli {
namespace {

using tests::TempDir;

TEST(FileWriter, ReplacesTheWholeFile) {
  const TempDir folder;
  const std::string path = folder.write("x.json", "old and longer");
  ASSERT_TRUE(write_whole(path, "new"));
  EXPECT_EQ(tests::read_text(path), "new");
  EXPECT_EQ(folder.names(), "x.json");
}

TEST(FileWriter, AFileSizeLimitLeavesWhatWasThere) {
  const TempDir folder;
  const std::string path = folder.write("x.json", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = 256, .rlim_max = 256};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto written = write_whole(path, std::string(4096, 'x'));
    ::_exit(!written && written.error().what.find("x.json") != std::string::npos ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(tests::read_text(path), "old");
  EXPECT_EQ(folder.names(), "x.json");
}

TEST(FileWriter, CheckingLeavesNothing) {
  const TempDir folder;
  EXPECT_TRUE(check_writable(folder.path("x.json")));
  EXPECT_EQ(folder.names(), "");
}

TEST(FileWriter, OnlyRegularFilesAreReplaced) {
  const TempDir folder;
  ASSERT_EQ(::mkfifo(folder.path("f.json").c_str(), 0600), 0);
  const auto writable = check_writable(folder.path("f.json"));
  ASSERT_FALSE(writable);
  EXPECT_NE(writable.error().what.find("not a regular file"), std::string::npos);
}

TEST(Renderings, AreChosenByTheLongestEnding) {
  EXPECT_EQ((*rendering_of_file("a/report.json"))->ending, ".json");
  EXPECT_EQ((*rendering_of_file("trace.perfetto.json"))->ending, ".perfetto.json");
  EXPECT_FALSE(rendering_of_file("trace.pdf"));
  EXPECT_FALSE(rendering_of_file("json"));
  EXPECT_EQ(*rendering_of_format("text"), nullptr);
  EXPECT_EQ((*rendering_of_format("github"))->format, "github");
  EXPECT_FALSE(rendering_of_format("xml"));
}

TEST(Near, FindsTypingMistakesAndParts) {
  const std::vector<std::string_view> kinds{"missing-rank", "dead-rank", "store-wait", "io-stall"};
  EXPECT_EQ(near("mising-rank", kinds), std::vector<std::string_view>{"missing-rank"});
  EXPECT_EQ(near("store", kinds), std::vector<std::string_view>{"store-wait"});
  EXPECT_EQ(near("rank", kinds), (std::vector<std::string_view>{"dead-rank", "missing-rank"}));
  EXPECT_TRUE(near("frobnicate", kinds).empty());
}

TEST(Number, TakesWholeNumbersBetweenBounds) {
  EXPECT_EQ(*number("12", "pid", 1, 100), 12);
  EXPECT_FALSE(number("", "pid", 1, 100));
  EXPECT_FALSE(number("1x", "pid", 1, 100));
  EXPECT_FALSE(number("101", "pid", 1, 100));
}

}  // namespace
}  // namespace ddpdoctor::cli
