// SPDX-License-Identifier: Apache-2.0
#include "base/lower.h"

#include <gtest/gtest.h>

namespace ddpdoctor::base {
namespace {

TEST(Lower, ChangesOnlyLettersOfAscii) {
  EXPECT_EQ(lower("NCCL WARN Ä_7"), "nccl warn Ä_7");
  EXPECT_EQ(lower(""), "");
}

}  // namespace
}  // namespace ddpdoctor::base
