// SPDX-License-Identifier: Apache-2.0
#include "viewer/layout.h"

#include <gtest/gtest.h>

#include "viewer/file_names.h"

namespace ddpdoctor::viewer {
namespace {

TEST(Layout, WidthCountsColumnsNotBytes) {
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("é·…"), 3U);
  EXPECT_EQ(display_width("学習"), 4U);
  EXPECT_EQ(display_width("e\xcc\x81"), 1U);  // e and a combining acute
}

TEST(Layout, FitCutsBetweenCharacters) {
  EXPECT_EQ(fit("dist.barrier()", 20), "dist.barrier()");
  EXPECT_EQ(fit("dist.barrier()", 6), "dist.…");
  EXPECT_EQ(fit("学習率", 4), "学…");
}

TEST(Layout, WrapBreaksAtBlanksAndKeepsLongWords) {
  EXPECT_EQ(wrap("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap("a /very/long/path b", 6),
            (std::vector<std::string>{"a", "/very/long/path", "b"}));
  EXPECT_EQ(wrap("", 6), std::vector<std::string>{""});
}

TEST(Layout, OneLineHasNoControlCharacters) {
  EXPECT_EQ(one_line("a\nb\x1b[31m"), "a b\\x1b[31m");
}

TEST(FileNames, AreBaseNamesUntilTwoFilesShareOne) {
  const FileNames names({"/srv/a/train.py", "/srv/b/train.py", "/srv/model.py"});
  EXPECT_EQ(names.shortened("/srv/a/train.py"), "a/train.py");
  EXPECT_EQ(names.shortened("/srv/b/train.py"), "b/train.py");
  EXPECT_EQ(names.shortened("/srv/model.py"), "model.py");
  EXPECT_EQ(names.place("/elsewhere/x.py", 7), "x.py:7");
  EXPECT_EQ(names.place("/elsewhere/x.py", 0), "x.py");
}

TEST(FileNames, ManySharedFoldersGiveTheWholePath) {
  const FileNames names({"/1/a/b/c/d/train.py", "/2/a/b/c/d/train.py"});
  EXPECT_EQ(names.shortened("/1/a/b/c/d/train.py"), "/1/a/b/c/d/train.py");
}

}  // namespace
}  // namespace ddpdoctor::viewer
