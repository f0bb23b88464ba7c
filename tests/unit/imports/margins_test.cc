// SPDX-License-Identifier: Apache-2.0
// Dumps as they appear in mails, issues and chats.
#include "collector/imports/stack_dumps/margins.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "collector/imports/logs/text_file.h"
#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/model/questions.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::string_view kFaulthandler = R"(Thread 0x00007f26f71336c0 (most recent call first):
  File "/app/data.py", line 327 in wait

Thread 0x00007f26f8c76b80 (most recent call first):
  File "/app/train.py", line 15 in <module>
)";

constexpr std::string_view kPySpy = R"(Process 71: python -u train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 71 (idle): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:3252)
        Arguments:
            group: None
    main (train.py:29)
)";

constexpr std::string_view kPystack =
    R"(Traceback for thread 91 (python) [] (most recent call last):
    (Python) File "/app/train.py", line 48, in main
        dist.barrier()
)";

constexpr std::string_view kGdb = R"(Thread 1 (Thread 0x7f11 (LWP 91) "python"):
#0  0x00007f26 in poll () from /usr/lib/libc.so.6
)";

std::string with_margin(std::string_view text, std::string_view margin) {
  std::string out;
  text.remove_suffix(1);  // the newline of the last line
  for (const std::string_view line : base::split(text, '\n')) {
    out += line.empty() ? base::trim(margin) : margin;
    out += line;
    out += '\n';
  }
  return out;
}

TEST(Margins, ADumpsOwnIndentationStays) {
  for (const std::string_view dump : {kFaulthandler, kPySpy, kPystack, kGdb}) {
    EXPECT_FALSE(without_margins(dump));
    for (const std::string_view margin :
         {"    ", "> ", ">", "> > ", "\t", ">     ", "# ", "    # "}) {
      EXPECT_EQ(without_margins(with_margin(dump, margin)), std::string(dump)) << margin;
    }
  }
}

TEST(Margins, WordsAroundAPastedDumpStay) {
  const std::string text = "My job hangs, and py-spy says:\n\n" + with_margin(kPySpy, "    ") +
                           "Do you know why?\n\n" + with_margin(kGdb, "> ") + "Thanks\n";
  EXPECT_EQ(without_margins(text), "My job hangs, and py-spy says:\n\n" + std::string(kPySpy) +
                                       "Do you know why?\n\n" + std::string(kGdb) + "Thanks\n");
}

TEST(Margins, ThreadsOfAQuotedDumpAreToldApart) {
  for (const std::string_view margin : {"    ", "> "}) {
    const std::string text = with_margin(kFaulthandler, margin);
    EXPECT_TRUE(is_faulthandler(text, "x"));
    auto job = read_text(text, "x");
    ASSERT_TRUE(job);
    ASSERT_EQ(job->observations.size(), 1U);
    EXPECT_EQ(job->observations.front().processes.at(0).threads.size(), 2U);
  }
}

TEST(Margins, ALogIsIndentedAsAWhole) {
  const std::string log =
      "[rank1]: Traceback (most recent call last):\n"
      "[rank1]:   File \"/app/train.py\", line 15, in <module>\n"
      "[rank1]: ValueError: no\n";
  EXPECT_EQ(without_margins(with_margin(log, "    ")), log);
  EXPECT_FALSE(without_margins("  File \"/app/train.py\", line 15, in <module>\n"));
  EXPECT_FALSE(without_margins("a\n    b\n"));
  EXPECT_FALSE(without_margins(""));
  EXPECT_FALSE(without_margins("   >  \n"));
}

TEST(Margins, OfACommentOnlyItsMarkIsOne) {
  EXPECT_FALSE(without_margins("#0  0x00007f26 in poll () from /usr/lib/libc.so.6\n"));
  EXPECT_FALSE(without_margins("### Process 71: python\n# text\n"));
}

}  // namespace
}  // namespace ddpdoctor::imports
