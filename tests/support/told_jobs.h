// SPDX-License-Identifier: Apache-2.0
// Every job that a test of this program has built, so that each can be diagnosed once more in
// another form.
#pragma once

#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::tests {

struct ToldJob {
  std::string test;  // "Suite.Name"
  model::JobModel job;
};

/// Filled by JobBuilder::build().
std::vector<ToldJob>& told_jobs();

}  // namespace ddpdoctor::tests
