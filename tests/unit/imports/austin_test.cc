// SPDX-License-Identifier: Apache-2.0
// Samples of austin.
#include <gtest/gtest.h>

#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

const std::string kMain = "/srv/app/train.py:<module>:70;/srv/app/train.py:main:";

TEST(Austin, TheStackWithTheMostTimeIsTheThreads) {
  const auto job = read_dump(
      "# austin: 3.6.0\n# mode: wall\nP71;T0:71;" + kMain + "40 2000\nP71;T0:71;" + kMain +
      "44 4999312\nP71;T0:90;/usr/lib/python3.11/threading.py:_bootstrap:1002;"
      "/srv/app/feed.py:fill:31 4990000\n# duration: 5000211\n");
  const model::Process& process = only(job);
  EXPECT_EQ(process.pid, 71);
  ASSERT_EQ(process.threads.size(), 2U);
  EXPECT_EQ(process.threads[0].tid, 71);
  EXPECT_EQ(process.threads[0].frames.at(0).line, 44);
  EXPECT_EQ(process.threads[0].frames.at(1).function, "<module>");
  EXPECT_NE(process.threads[0].state, 'R');
  EXPECT_EQ(process.threads[1].frames.at(0).function, "fill");
}

TEST(Austin, AThreadAtTwoLinesRuns) {
  const auto job = read_dump("P71;T71;" + kMain + "40 2000\nP71;T71;" + kMain + "44 3000\n");
  EXPECT_EQ(only(job).threads.at(0).state, 'R');
}

TEST(Austin, OtherLinesAreNoSamples) {
  for (const std::string text : {"P71;T71;nothing 12\n", "Path;Time 12\n", "P71;T71; 12\n"}) {
    EXPECT_TRUE(read_dump(text).observations.empty()) << text;
  }
}

}  // namespace
}  // namespace ddpdoctor::imports
