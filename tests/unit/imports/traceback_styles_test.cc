// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/traceback_styles.h"

#include <string>
#include <string_view>

#include "base/text.h"
#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

std::string exchook(int rank) {
  return R"(Traceback (most recent call last):
  File "/srv/run.py", line 9, in Engine.train
    line: setup(
              data,
          )
    locals:
      setup = <local> <function setup at 0x7f>
      self = <local> <run.Engine object at 0x7f>
  File "/v/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 3868, in new_group
    line: pg = _new_process_group_helper(size, group_rank, ranks)
    locals:
      group_rank = <local> )" +
         std::to_string(rank) + R"(
      ranks = <local> [4, 5, 6, 7]
RuntimeError: Socket Timeout
)";
}

TEST(TracebackStyles, BetterExchookIsRewrittenWithTheRankOfItsLocals) {
  const auto plain = with_plain_tracebacks(exchook(1));
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->text,
            R"([rank5]: Traceback (most recent call last):
[rank5]:   File "/srv/run.py", line 9, in train
[rank5]:     setup(
[rank5]:   File "/v/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 3868, in new_group
[rank5]:     pg = _new_process_group_helper(size, group_rank, ranks)
[rank5]: RuntimeError: Socket Timeout
)");
  ASSERT_EQ(plain->members.size(), 1U);
  EXPECT_EQ(plain->members[0], model::RankSet({4, 5, 6, 7}));
}

TEST(TracebackStyles, TheRankInFrontOfALineOverridesTheLocals) {
  const std::string bare = exchook(1);
  std::string named;
  for (const std::string_view line : base::split(base::trim(bare), '\n')) {
    named += "[rank2]: " + std::string(line) + "\n";
  }
  const auto plain = with_plain_tracebacks(named);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->text.find("[rank5]"), std::string::npos);
  EXPECT_NE(plain->text.find("[rank2]:   File \"/srv/run.py\", line 9, in train\n"),
            std::string::npos);
}

TEST(TracebackStyles, LogurusValuesAndBlankLinesAreRemoved) {
  const auto plain = with_plain_tracebacks(R"(Traceback (most recent call last):

  File "/srv/a.py", line 7, in <module>
    main()
    └ <function main at 0x7f>

> File "/srv/a.py", line 4, in main
    return 1 / x
               └ 0

ZeroDivisionError: division by zero
after
)");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->text, R"(Traceback (most recent call last):
  File "/srv/a.py", line 7, in <module>
    main()
  File "/srv/a.py", line 4, in main
    return 1 / x
ZeroDivisionError: division by zero
after
)");
}

TEST(TracebackStyles, PythonsOwnTracebacksAreNotChanged) {
  EXPECT_FALSE(with_plain_tracebacks(R"(Traceback (most recent call last):
  File "/srv/a.py", line 7, in <module>
    line = read()
    ^^^^^^^^^
ValueError: no

locals:
)"));
  EXPECT_FALSE(with_plain_tracebacks("line: main()\nlocals:\n"));
}

TEST(TracebackStyles, AMemberWithoutATracebackDidNotArrive) {
  const auto missing = [](const std::string& log) {
    model::RankSet out;
    const model::JobModel job = read_log(log);
    for (const model::Process& process : job.observations.back().processes) {
      const bool stack = !process.threads.empty() && !process.threads.front().frames.empty();
      if (!stack && process.rank) {
        out.insert(*process.rank);
      }
    }
    return out;
  };
  EXPECT_EQ(missing(exchook(1) + exchook(2) + exchook(3)), model::RankSet({4}));
  EXPECT_EQ(missing(exchook(1)), model::RankSet());  // an excerpt
}

}  // namespace
}  // namespace ddpdoctor::imports
