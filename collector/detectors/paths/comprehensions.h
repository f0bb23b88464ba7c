// SPDX-License-Identifier: Apache-2.0
// `losses = [step(x) for x in loader]`: a loop without a line of its own.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "collector/detectors/paths/source_path.h"

namespace ddpdoctor::detectors {

struct Comprehension {
  model::CallSite where;
  std::string header;    // "for x in loader"
  std::string iterable;  // "loader"
};

/// The comprehension in the statement of `site` that calls the frames inside it: the first `inner`
/// of `path`, innermost first. nullopt if the statement has none.
std::optional<Comprehension> comprehension_at(const model::JobModel& job,
                                              const model::CallSite& site, const Path& path,
                                              std::size_t inner);

}  // namespace ddpdoctor::detectors
