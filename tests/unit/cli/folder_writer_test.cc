// SPDX-License-Identifier: Apache-2.0
#include "cli/folder_writer.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/temp_dir.h"

namespace ddpdoctor::cli {
namespace {

using tests::TempDir;

const Folder kTwo{.files = {{"rank_0", "zero"}, {"rank_1", "one"}}, .time = 1e9, .notes = {}};
const Folder kOne{.files = {{"rank_0", "new"}}, .time = 0, .notes = {}};

TEST(FolderWriter, WritesEveryFileWithItsTime) {
  const TempDir folder;
  ASSERT_TRUE(write_whole_folder(folder.path("x.fr/"), kTwo));
  EXPECT_EQ(tests::read_text(folder.path("x.fr/rank_1")), "one");
  struct stat status{};
  ASSERT_EQ(::stat(folder.path("x.fr/rank_0").c_str(), &status), 0);
  EXPECT_EQ(status.st_mtim.tv_sec, 1'000'000'000);
  EXPECT_EQ(folder.names(), "x.fr");
}

TEST(FolderWriter, ReplacesDumpsThatWereThere) {
  const TempDir folder;
  ASSERT_TRUE(write_whole_folder(folder.path("x.fr"), kTwo));
  ASSERT_TRUE(write_whole_folder(folder.path("x.fr"), kOne));
  EXPECT_EQ(tests::read_text(folder.path("x.fr/rank_0")), "new");
  EXPECT_FALSE(std::filesystem::exists(folder.path("x.fr/rank_1")));
  EXPECT_EQ(folder.names(), "x.fr");
}

TEST(FolderWriter, RefusesAFolderWithOtherFiles) {
  const TempDir folder;
  ASSERT_TRUE(write_whole_folder(folder.path("x.fr"), kTwo));
  folder.write("x.fr/notes.txt", "mine");
  EXPECT_FALSE(check_writable_folder(folder.path("x.fr")));
  EXPECT_FALSE(write_whole_folder(folder.path("x.fr"), kOne));
  EXPECT_EQ(tests::read_text(folder.path("x.fr/notes.txt")), "mine");
  EXPECT_EQ(tests::read_text(folder.path("x.fr/rank_0")), "zero");
}

TEST(FolderWriter, CheckingLeavesNothing) {
  const TempDir folder;
  EXPECT_TRUE(check_writable_folder(folder.path("x.fr")));
  EXPECT_EQ(folder.names(), "");
  EXPECT_FALSE(check_writable_folder(folder.path("no/x.fr")));
  folder.write("file.fr", "text");
  EXPECT_FALSE(check_writable_folder(folder.path("file.fr")));
}

}  // namespace
}  // namespace ddpdoctor::cli
