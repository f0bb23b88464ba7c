// SPDX-License-Identifier: Apache-2.0
#include "base/path_ends.h"

#include <gtest/gtest.h>

namespace ddpdoctor::base {
namespace {

TEST(PathEnds, AreComparedAtFolders) {
  EXPECT_TRUE(path_ends_with("/a/distributed.py", "distributed.py"));
  EXPECT_FALSE(path_ends_with("/a/mydistributed.py", "distributed.py"));
  EXPECT_TRUE(path_ends_with("distributed.py", ""));
}

TEST(PathEnds, OfCopiesOfMultiprocessingAreItsOwn) {
  EXPECT_TRUE(path_ends_with("/v/site-packages/multiprocess/pool.py", "multiprocessing/pool.py"));
  EXPECT_TRUE(path_ends_with("billiard/pool.py", "multiprocessing/pool.py"));
  EXPECT_FALSE(path_ends_with("mymultiprocess/pool.py", "multiprocessing/pool.py"));
  EXPECT_FALSE(path_ends_with("multiprocess/queues.py", "multiprocessing/pool.py"));
  EXPECT_FALSE(path_ends_with("/pool.py", "multiprocessing/pool.py"));
}

TEST(PathContains, FindsAFolderAlsoOfACopyOfMultiprocessing) {
  EXPECT_TRUE(path_contains("/usr/lib/python3.12/multiprocessing/util.py", kMultiprocessing));
  EXPECT_TRUE(path_contains("/v/multiprocess/pool.py", kMultiprocessing));
  EXPECT_TRUE(path_contains("/v/billiard/billiard/pool.py", "multiprocessing/pool.py"));
  EXPECT_TRUE(path_contains("torch/nn/modules/module.py", "torch/nn/"));
  EXPECT_FALSE(path_contains("/v/mymultiprocess/pool.py", kMultiprocessing));
  EXPECT_FALSE(path_contains("/v/multiprocess_utils/pool.py", kMultiprocessing));
  EXPECT_FALSE(path_contains("multiprocess/queues.py", "multiprocessing/pool.py"));
}

}  // namespace
}  // namespace ddpdoctor::base
