// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/spool_job.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "collector/model/building/add_recordings.h"
#include "collector/model/building/build_model.h"
#include "collector/monitor/spool.h"
#include "collector/sources/rings/reader.h"
#include "wire/names.h"

namespace ddpdoctor::monitor {

bool holds_rings(const std::string& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (entry->path().string().ends_with(wire::kRingSuffix)) {
      return true;
    }
  }
  return false;
}

base::Result<model::JobModel> job_of_spool(const std::string& folder) {
  std::vector<std::string> problems;
  const std::vector<sources::Recording> recordings = TRY(sources::read_spool(folder, problems));
  if (recordings.empty()) {
    return base::failure(
        problems.empty() ? fmt::format("{} holds no ring", folder) : std::move(problems.front()),
        "report reads the *.ring files of a run --spool folder");
  }
  model::JobModel job;
  job.ended = true;
  if (auto host = recording_host(folder)) {
    job.hosts = {std::move(*host)};
  }
  model::add_recordings(job, recordings);
  job.coverage.warnings.insert(job.coverage.warnings.end(), problems.begin(), problems.end());
  model::load_sources(job);
  return job;
}

}  // namespace ddpdoctor::monitor
