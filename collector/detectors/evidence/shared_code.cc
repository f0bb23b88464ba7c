// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/shared_code.h"

#include <algorithm>

#include "base/path_ends.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

/// A tool may have shortened one of the paths: "train/loop.py" of "/srv/train/loop.py".
bool is_one_function(const model::Frame& frame, const model::CallSite& site) {
  return frame.language == model::Language::kPython && !frame.file.empty() && !site.file.empty() &&
         frame.function == site.function && frame.function != "<module>" &&
         (base::path_ends_with(frame.file, site.file) ||
          base::path_ends_with(site.file, frame.file));
}

}  // namespace

bool is_code_of_ranks(const model::JobModel& job, const Traceback& traceback) {
  const auto all = processes(job);
  return std::any_of(all.begin(), all.end(), [&traceback](const model::Process* process) {
    const model::Thread* main =
        process->role == model::Role::kRank ? model::main_thread(*process) : nullptr;
    return main != nullptr &&
           std::any_of(main->frames.begin(), main->frames.end(), [&](const model::Frame& frame) {
             return std::any_of(
                 traceback.frames.begin(), traceback.frames.end(),
                 [&frame](const model::CallSite& site) { return is_one_function(frame, site); });
           });
  });
}

}  // namespace ddpdoctor::detectors
