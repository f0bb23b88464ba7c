// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/framework_place.h"

#include <algorithm>
#include <utility>

#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/paths/call_runs.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

/// The frames of frameworks below the user's innermost line, outermost first.
Path below_user_code(const Side& side) {
  Path out;
  if (side.standing == nullptr || side.standing->thread == nullptr) {
    return out;
  }
  for (const model::Frame& frame : side.standing->thread->frames) {
    if (frame.language != model::Language::kPython) {
      continue;
    }
    if (model::is_user_file(frame.file)) {
      std::reverse(out.begin(), out.end());
      return out;
    }
    if (model::is_framework_file(frame.file)) {
      out.push_back(model::call_site(frame));
    }
  }
  return {};
}

/// The file of the function in which they diverge; nullptr if they have none in common.
const std::string* file_of_fork(const Path& odd, const Path& rest) {
  for (std::size_t i = 0; i < std::min(odd.size(), rest.size()); ++i) {
    if (!same_function(odd[i], rest[i])) {
      return nullptr;
    }
    if (odd[i].line != rest[i].line) {
      return &odd[i].file;
    }
  }
  return nullptr;
}

/// The side's path from the innermost line in this file outwards.
Path within(const Path& below, const std::string& file, const Path& user) {
  Path out;
  std::copy_if(below.rbegin(), below.rend(), std::back_inserter(out),
               [&file](const model::CallSite& site) { return site.file == file; });
  out.insert(out.end(), user.begin(), user.end());
  return out;
}

}  // namespace

void place_in_framework(Explanation& explanation) {
  Side& odd = explanation.parting.odd;
  Side& rest = explanation.parting.rest;
  if (odd.path.empty() || !same_path(odd.path, rest.path)) {
    return;
  }
  const Path below_odd = below_user_code(odd);
  const Path below_rest = below_user_code(rest);
  const std::string* const file = file_of_fork(below_odd, below_rest);
  if (file == nullptr) {
    return;
  }
  explanation.user_line = odd.path.front();
  odd.path = within(below_odd, *file, odd.path);
  rest.path = within(below_rest, *file, rest.path);
}

void add_user_line(const Explanation& explanation, Finding& finding) {
  if (explanation.user_line.known()) {
    finding.locations.push_back(location(
        explanation.user_line, explanation.parting.odd.ranks.united(explanation.parting.rest.ranks),
        "leads there on all of them"));
  }
}

}  // namespace ddpdoctor::detectors
