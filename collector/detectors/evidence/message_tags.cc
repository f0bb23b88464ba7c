// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/message_tags.h"

#include <algorithm>

namespace ddpdoctor::detectors {

std::string tag_of(const graph::Standing& standing) {
  if (standing.call && standing.call->tag) {
    return std::to_string(*standing.call->tag);
  }
  if (standing.thread == nullptr) {
    return {};
  }
  for (const model::Frame& frame : standing.thread->frames) {
    const auto tag = std::find_if(frame.locals.begin(), frame.locals.end(),
                                  [](const auto& local) { return local.first == "tag"; });
    if (tag != frame.locals.end()) {
      return tag->second;
    }
  }
  return {};
}

bool tags_differ(const graph::Standing& a, const graph::Standing& b) {
  return !tag_of(a).empty() && !tag_of(b).empty() && tag_of(a) != tag_of(b);
}

}  // namespace ddpdoctor::detectors
