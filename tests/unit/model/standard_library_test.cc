// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/standard_library.h"

#include <gtest/gtest.h>

#include "collector/model/questions.h"

namespace ddpdoctor::model {
namespace {

TEST(StandardLibrary, ContainsModulesAndPackagesByTheirShortPaths) {
  for (const auto* path : {"weakref.py", "threading.py", "concurrent/futures/_base.py",
                           "asyncio/runners.py", "zipfile.py", "xml/dom/minidom.py"}) {
    EXPECT_TRUE(is_of_standard_library(path)) << path;
    EXPECT_FALSE(is_user_file(path)) << path;
  }
}

TEST(StandardLibrary, ContainsFilesOfCPythonsOwnTree) {
  for (const auto* path : {"/build/Lib/multiprocessing/util.py", "/build/Lib/threading.py"}) {
    EXPECT_FALSE(is_user_file(path)) << path;
  }
  for (const auto* path : {"/build/Lib/test/_test_queue.py", "/srv/Lib/train.py"}) {
    EXPECT_TRUE(is_user_file(path)) << path;
  }
}

TEST(StandardLibrary, DoesNotContainFilesOfTheUser) {
  for (const auto* path : {"train.py", "data/threading.py", "code/train.py", "profile.py",
                           "/srv/me/weakref.py", "weakref", "test/test_all.py", ""}) {
    EXPECT_FALSE(is_of_standard_library(path)) << path;
  }
}

}  // namespace
}  // namespace ddpdoctor::model
