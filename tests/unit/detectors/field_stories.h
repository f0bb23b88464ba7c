// SPDX-License-Identifier: Apache-2.0
// Four ranks in one all_reduce, rank 2 with another value in one field: requirements on every kind
// that compares a field.
#pragma once

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {

/// A kind, the field of the call that it compares, and two values of the field.
struct FieldStory {
  std::string_view kind;
  std::string tests::CallStory::* field;
  std::string usual, odd;

  tests::CallStory call(const std::string& value, const std::string& site = {}) const {
    tests::CallStory made{.operation = "all_reduce", .sequence = 3, .site = site};
    made.*field = value;
    return made;
  }

  JobBuilder told() const {
    JobBuilder builder = job();
    builder.ranks(4)
        .call({0, 1, 3}, call(usual, "step@/srv/train.py:8"))
        .call(2, call(odd, "step@/srv/train.py:9"));
    return builder;
  }

  void expect_the_odd_rank_named() const {
    const Findings findings = asked(kind, told().build());
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
    EXPECT_EQ(findings[0].locations.at(0).line, 9);
    EXPECT_NE(findings[0].summary.find(odd), std::string::npos);
  }

  void expect_it_said_of_a_moving_job() const {
    EXPECT_EQ(asked(kind, moving(told().build())).size(), 1U);
  }

  void expect_silence_when_all_agree_or_one_is_unknown() const {
    EXPECT_TRUE(asked(kind, job().ranks(4).call(kAll, call(usual)).build()).empty());
    EXPECT_TRUE(asked(kind, job().ranks(2).call(0, call(usual)).call(1, call({})).build()).empty());
  }

  void expect_no_unobserved_rank_accused() const {
    JobBuilder builder = job();
    builder.ranks(2).call(0, call(usual)).unobserved(1);
    EXPECT_TRUE(asked(kind, builder.build()).empty());
  }

  void expect_the_order_of_ranks_not_to_matter() const {
    EXPECT_EQ(essence(asked(kind, told().build())),
              essence(asked(kind, records_reversed(told().build()))));
  }
};

}  // namespace ddpdoctor::detectors
