// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>

#include "collector/detectors/paths/source_path.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

/// The path from the outermost frame of this function inwards; empty if it has none.
Path from(const Path& path, const model::CallSite& function) {
  const auto begins = std::find_if(path.rbegin(), path.rend(), [&function](const auto& site) {
    return same_function(site, function);
  });
  return {path.begin(), begins.base()};
}

std::optional<Fork> fork_of_aligned(const Path& ours, const Path& theirs) {
  const auto below = [](const Path& path, std::size_t depth) {
    return Path(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(path.size() - 1 - depth));
  };
  std::size_t depth = 0;
  const std::size_t common = std::min(ours.size(), theirs.size());
  while (depth < common) {
    const model::CallSite& a = ours[ours.size() - 1 - depth];
    const model::CallSite& b = theirs[theirs.size() - 1 - depth];
    if (!same_function(a, b)) {
      break;
    }
    if (a.line != b.line) {
      return Fork{.ours = a,
                  .theirs = b,
                  .below_ours = below(ours, depth),
                  .below_theirs = below(theirs, depth)};
    }
    ++depth;
  }
  // One line calls both: a library (Trainer.fit) has led the ranks into different hooks.
  if (depth == 0 || (depth == ours.size() && depth == theirs.size())) {
    return std::nullopt;
  }
  return Fork{.ours = ours[ours.size() - depth],
              .theirs = theirs[theirs.size() - depth],
              .below_ours = below(ours, depth - 1),
              .below_theirs = below(theirs, depth - 1)};
}

}  // namespace

bool same_function(const model::CallSite& a, const model::CallSite& b) {
  return a.file == b.file && a.function == b.function;
}

Path python_path(const model::Thread& thread) {
  Path out;
  for (const model::Frame& frame : thread.frames) {
    if (frame.language == model::Language::kPython) {
      out.push_back(model::call_site(frame));
    }
  }
  return out;
}

std::optional<Fork> fork_of(const Path& ours, const Path& theirs) {
  if (ours.empty() || theirs.empty() || same_function(ours.back(), theirs.back())) {
    return fork_of_aligned(ours, theirs);
  }
  // A record keeps the innermost frames: the other path then begins further out.
  const Path theirs_from = from(theirs, ours.back());
  return theirs_from.empty() ? fork_of_aligned(from(ours, theirs.back()), theirs)
                             : fork_of_aligned(ours, theirs_from);
}

}  // namespace ddpdoctor::detectors
