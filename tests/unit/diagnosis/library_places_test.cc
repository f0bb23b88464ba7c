// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collector/diagnosis/diagnosis.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::diagnosis {
namespace {

using namespace ddpdoctor::tests;

const std::string kInBarrier =
    "py:barrier@/v/site-packages/torch/distributed/distributed_c10d.py:9 | "
    "py:main@/srv/train.py:30";

std::vector<int> lines_of_first_finding(const std::string& odd) {
  const Diagnosis found = diagnose(job().ranks(3).stack(kAll, kInBarrier).stack(1, odd).build());
  std::vector<int> out;
  for (const auto& place :
       found.findings.empty() ? std::vector<detectors::Location>() : found.findings[0].locations) {
    out.push_back(place.line);
  }
  return out;
}

TEST(LibraryPlaces, FollowTheLineThatCalledTheLibrary) {
  EXPECT_EQ(lines_of_first_finding("py:wait@/usr/lib/python3.11/threading.py:5 | "
                                   "py:fetch@/v/site-packages/hub/client.py:41 | "
                                   "py:open@/v/site-packages/hub/api.py:7 | "
                                   "py:main@/srv/train.py:12"),
            (std::vector<int>{12, 41, 30}));
}

TEST(LibraryPlaces, AreNoneInTorchOrAroundACollective) {
  EXPECT_EQ(lines_of_first_finding("py:select@/v/site-packages/torch/utils/data/x.py:5 | "
                                   "py:main@/srv/train.py:12"),
            (std::vector<int>{12, 30}));
  EXPECT_EQ(lines_of_first_finding(
                "py:broadcast@/v/site-packages/torch/distributed/distributed_c10d.py:3 | "
                "py:share@/v/site-packages/hub/ranks.py:41 | py:main@/srv/train.py:12"),
            (std::vector<int>{12, 30}));
}

}  // namespace
}  // namespace ddpdoctor::diagnosis
