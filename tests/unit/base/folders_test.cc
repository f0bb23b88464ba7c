// SPDX-License-Identifier: Apache-2.0
#include "base/folders.h"

#include <gtest/gtest.h>

namespace ddpdoctor::base {
namespace {

TEST(LiesIn, AFolderAnywhereInThePath) {
  EXPECT_TRUE(lies_in("/opt/site-packages/wandb/sdk/run.py", "wandb"));
  EXPECT_TRUE(lies_in("wandb/sdk/run.py", "wandb"));
  EXPECT_TRUE(lies_in("/a/torch/utils/data.py", "torch/utils"));
  EXPECT_FALSE(lies_in("/opt/mywandb/run.py", "wandb"));
  EXPECT_FALSE(lies_in("/opt/wandbx/run.py", "wandb"));
  EXPECT_FALSE(lies_in("/opt/wandb", "wandb"));
  EXPECT_FALSE(lies_in("run.py", ""));
}

}  // namespace
}  // namespace ddpdoctor::base
