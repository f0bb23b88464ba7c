// SPDX-License-Identifier: Apache-2.0
// Archives given to `report`, including hostile ones.
#include <filesystem>

#include <gtest/gtest.h>

#include "cli/unpacked_inputs.h"
#include "tests/support/temp_dir.h"

namespace ddpdoctor::cli {
namespace {

namespace fs = std::filesystem;
using tests::TempDir;

class Archives : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!can_unpack()) {
      GTEST_SKIP() << "built without libarchive";
    }
  }
  /// Runs tar or another program in the folder.
  void run(const std::string& command) const {
    const std::string whole = "cd '" + folder_.path("") + "' && " + command;
    ASSERT_EQ(std::system(whole.c_str()), 0)
        << command;  // NOLINT(cert-env33-c,concurrency-mt-unsafe)
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return folder_.path(name);
  }
  const TempDir folder_;
};

TEST_F(Archives, AreUnpackedAtTheirNamesAndGoWithTheObject) {
  fs::create_directory(path("logs"));
  folder_.write("logs/rank_3.log", "hello\n");
  run("tar -czf node1.tar.gz logs && gzip -k logs/rank_3.log");
  std::string left;
  {
    UnpackedInputs archives;
    const auto folder = archives.folder_for(path("node1.tar.gz"));
    ASSERT_TRUE(folder);
    left = *folder;
    EXPECT_EQ(fs::path(*folder).filename(), "node1");
    EXPECT_TRUE(fs::exists(*folder + "/logs/rank_3.log"));
    EXPECT_EQ(archives.as_given(*folder + "/logs/rank_3.log"),
              path("node1.tar.gz") + ": logs/rank_3.log");
    const auto single = archives.folder_for(path("logs/rank_3.log.gz"));
    ASSERT_TRUE(single);
    EXPECT_TRUE(fs::exists(*single + "/rank_3.log"));
  }
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(Archives, NothingIsWrittenOutsideAndNoLinksAreMade) {
  folder_.write("evil", "x");
  run("ln -s /etc/passwd link && mkdir -p d && ln evil d/hard && tar -cf a.tar "
      "--transform='s,^evil,../../evil,' -P evil link && tar -rf a.tar d");
  UnpackedInputs archives;
  const auto folder = archives.folder_for(path("a.tar"));
  ASSERT_TRUE(folder);
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(*folder)) {
    EXPECT_FALSE(entry.is_symlink());
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_LE(files, 1U);
  EXPECT_FALSE(fs::exists(fs::path(*folder).parent_path().parent_path() / "evil"));
}

TEST_F(Archives, TooMuchIsRefusedWithOneSentence) {
  run("yes | head -c 3000000 > zero && gzip zero && mkdir many && cd many && touch 1 2 3 4 && "
      "cd .. && tar -cf many.tar many");
  UnpackedInputs small(UnpackLimits{.bytes = 1'000'000});
  const auto bomb = small.folder_for(path("zero.gz"));
  ASSERT_FALSE(bomb);
  EXPECT_NE(bomb.error().what.find("holds more than"), std::string::npos) << bomb.error().what;
  UnpackedInputs few(UnpackLimits{.files = 3});
  const auto many = few.folder_for(path("many.tar"));
  ASSERT_FALSE(many);
  EXPECT_NE(many.error().what.find("more files"), std::string::npos) << many.error().what;
}

TEST_F(Archives, DamagedOnesAreRefused) {
  UnpackedInputs archives;
  for (const char* const bytes :
       {"\x1f\x8b\x08 and so on", "PK\x03\x04 and so on", "\x28\xb5\x2f\xfd!"}) {
    const auto folder = archives.folder_for(folder_.write("x.gz", bytes));
    ASSERT_FALSE(folder);
    EXPECT_NE(folder.error().what.find("cannot be unpacked"), std::string::npos)
        << folder.error().what;
  }
}

TEST_F(Archives, OneInsideTheOtherThreeTimesIsEnough) {
  folder_.write("a.log", "x");
  run("tar -cf 1.tar a.log && tar -cf 2.tar 1.tar && tar -cf 3.tar 2.tar && tar -cf 4.tar 3.tar");
  UnpackedInputs archives;
  std::string next = path("4.tar");
  for (const char* const inner : {"/3.tar", "/2.tar", "/1.tar"}) {
    const auto folder = archives.folder_for(next);
    ASSERT_TRUE(folder) << folder.error().what;
    next = *folder + inner;
  }
  EXPECT_FALSE(archives.folder_for(next));
}

}  // namespace
}  // namespace ddpdoctor::cli
