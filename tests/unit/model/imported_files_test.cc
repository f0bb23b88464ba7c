// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/imported_files.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace ddpdoctor::model {
namespace {

using Paths = std::vector<std::string>;

/// Candidates for the only import of the line.
Paths of(const std::string& line, std::string_view file = "/job/app/train.py") {
  const auto all = import_candidates(file, {{3, line}});
  return all.size() == 1 ? all.front() : Paths{};
}

TEST(ImportedFiles, AModuleLiesBesideTheFileOrBelowAFolderAroundIt) {
  EXPECT_EQ(of("import lib.dist as d  # helpers"),
            (Paths{"/job/app/lib/dist.py", "/job/app/lib/dist/__init__.py", "/job/lib/dist.py",
                   "/job/lib/dist/__init__.py"}));
}

TEST(ImportedFiles, ARelativeImportNamesOneFolder) {
  const auto all = import_candidates("/job/app/train.py", {{1, "    from ..core import hooks"}});
  ASSERT_EQ(all.size(), 2);
  EXPECT_EQ(all[0], (Paths{"/job/core.py", "/job/core/__init__.py"}));
  EXPECT_EQ(all[1], (Paths{"/job/core/hooks.py", "/job/core/hooks/__init__.py"}));
  EXPECT_EQ(import_candidates("/job/app/train.py", {{1, "from . import ids"}}).size(), 1);
}

TEST(ImportedFiles, SeveralNamesAreSeveralModules) {
  EXPECT_EQ(import_candidates("/job/train.py", {{1, "import os, data"}}).size(), 2);
  EXPECT_EQ(
      import_candidates("/job/train.py", {{1, "from lib import (a,"}, {2, "  b as c)"}}).size(), 3);
  EXPECT_EQ(import_candidates("/job/train.py", {{1, "from lib import *"}}).size(), 1);
}

TEST(ImportedFiles, AModuleMayBeImportedByItsName) {
  const auto all = import_candidates(
      "/job/train.py", {{1, "import importlib"}, {2, "importlib.import_module('plugins.curves')"}});
  ASSERT_EQ(all.size(), 2);
  EXPECT_EQ(all[1], (Paths{"/job/plugins/curves.py", "/job/plugins/curves/__init__.py"}));
  EXPECT_EQ(import_candidates("/job/train.py", {{1, "import_module(f'plugins.{name}')"}}).size(),
            0);
}

TEST(ImportedFiles, NothingElseIsAnImport) {
  for (const std::string line : {"important = 1", "from here", "print('import x')", "import ",
                                 "from . import", "import ../../etc/passwd", "from a/b import c"}) {
    EXPECT_TRUE(import_candidates("/job/train.py", {{1, line}}).empty()) << line;
  }
  EXPECT_TRUE(import_candidates("train.py", {{1, "import data"}}).empty());
  EXPECT_TRUE(import_candidates("/train.py", {{1, "from ...... import data"}}).empty());
}

}  // namespace
}  // namespace ddpdoctor::model
