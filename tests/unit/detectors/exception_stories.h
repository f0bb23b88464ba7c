// SPDX-License-Identifier: Apache-2.0
// Rank 1 ends with an exception that is in its log: requirements on every kind that is recognized
// by a message.
#pragma once

#include <string>
#include <string_view>

#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {

inline constexpr std::string_view kInModule = "/opt/site-packages/torch/nn/modules/module.py";

/// Rank 1's log, ending with this message ("ValueError: …"), raised by a library in this file.
inline std::string traceback_ending(std::string_view message, std::string_view file = kInModule) {
  return R"log([rank1]: Traceback (most recent call last):
[rank1]:   File "/srv/train.py", line 40, in <module>
[rank1]:   File "/srv/train.py", line 12, in step
[rank1]:   File ")log" +
         std::string(file) + "\", line 1500, in forward\n[rank1]: " + std::string(message) + "\n";
}

/// The rank, and the innermost user line, with a fix.
inline void expect_rank_and_line(std::string_view kind, std::string_view message,
                                 std::string_view file = kInModule) {
  const Findings findings = asked(kind, tests::job()
                                            .ranks(2)
                                            .stack(0, kInBarrier)
                                            .exited(1, 1)
                                            .log({}, traceback_ending(message, file))
                                            .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 12);
  EXPECT_FALSE(findings[0].fix.empty());
}

inline void expect_silence_on_other_messages(std::string_view kind) {
  EXPECT_TRUE(asked(kind, tests::job()
                              .ranks(2)
                              .stack(tests::kAll, kInBarrier)
                              .log(1, "[rank1]: ValueError: other")
                              .build())
                  .empty());
}

/// A message in the log of a job that continues is at most possible.
inline void expect_doubt_when_survived(std::string_view kind, std::string_view message) {
  EXPECT_TRUE(nothing_likely(asked(kind, tests::job()
                                             .ranks(2)
                                             .stack(tests::kAll, kInBarrier)
                                             .log({}, traceback_ending(message))
                                             .progress(model::Progress::kMoving)
                                             .build())));
}

}  // namespace ddpdoctor::detectors
