// SPDX-License-Identifier: Apache-2.0
#include "collector/diagnosis/library_places.h"

#include <algorithm>
#include <optional>

#include "base/path_ends.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/graph/history.h"
#include "collector/model/questions.h"

namespace ddpdoctor::diagnosis {
namespace {

bool is_at(const model::Frame& frame, const detectors::Location& place) {
  return frame.language == model::Language::kPython && frame.line == place.line &&
         frame.file == place.file;
}

/// In a call of torch.distributed: what a library has around it says no more than the call.
bool is_in_collective(const model::Thread& thread) {
  return std::any_of(thread.frames.begin(), thread.frames.end(), [](const model::Frame& frame) {
    return frame.language == model::Language::kPython &&
           base::path_ends_with(frame.file, "torch/distributed/distributed_c10d.py");
  });
}

/// The innermost line of a library in the calls that a thread made at this line; nullptr if it is
/// not there, or is in torch, the standard library or compiled code only.
const model::Frame* library_below(const model::Thread& thread, const detectors::Location& place) {
  const auto at = std::find_if(thread.frames.begin(), thread.frames.end(),
                               [&place](const model::Frame& frame) { return is_at(frame, place); });
  const auto found = std::find_if(thread.frames.begin(), at, [](const model::Frame& frame) {
    return frame.language == model::Language::kPython && model::is_framework_file(frame.file);
  });
  const bool known = at != thread.frames.end() && found != at && !is_in_collective(thread);
  return known ? &*found : nullptr;
}

/// Where all threads at this line are in a library; nothing if they are at several lines.
std::optional<model::CallSite> library_of(const model::JobModel& job,
                                          const detectors::Location& place) {
  std::optional<model::CallSite> out;
  const model::Observation* now = model::latest(job);
  if (now == nullptr) {
    return out;
  }
  for (const model::Process& process : now->processes) {
    for (const model::Thread& thread : process.threads) {
      const model::Frame* frame = library_below(thread, place);
      if (frame == nullptr) {
        continue;
      }
      if (out && !graph::same_line(*out, model::call_site(*frame))) {
        return std::nullopt;
      }
      out = model::call_site(*frame);
    }
  }
  return out;
}

}  // namespace

void tell_library_places(std::vector<Judged>& findings, const graph::Examination& examination) {
  for (Judged& judged : findings) {
    auto& places = judged.finding.locations;
    if (places.empty() || judged.effect() != detectors::Effect::kHang ||
        !model::is_user_file(places.front().file)) {
      continue;
    }
    const auto library = library_of(examination.job, places.front());
    const bool listed = library && std::any_of(places.begin(), places.end(), [&](const auto& one) {
                          return one.file == library->file && one.line == library->line;
                        });
    if (library && !listed) {
      detectors::Location place = detectors::location(*library, places.front().ranks,
                                                      "this function of a library is running");
      place.rank = places.front().rank;
      places.insert(places.begin() + 1, std::move(place));
    }
  }
}

}  // namespace ddpdoctor::diagnosis
