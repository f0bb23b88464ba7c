// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/paths/comprehensions.h"

#include <string_view>

#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors {
namespace {

/// The name by which a line calls the frame inside it; up to Python 3.11, comprehensions have
/// frames of their own.
std::string_view called_inside(const Path& path, std::size_t inner) {
  for (std::size_t i = inner; i > 0; --i) {
    const std::string_view name = program::last_name(path[i - 1].function);
    if (!name.empty() && name.front() != '<') {
      return name;
    }
  }
  return {};
}

}  // namespace

std::optional<Comprehension> comprehension_at(const model::JobModel& job,
                                              const model::CallSite& site, const Path& path,
                                              std::size_t inner) {
  constexpr std::string_view kIn = " in ";
  const std::string_view callee = called_inside(path, inner);
  const std::string statement = program::statement_at(lines_of(job, site.file), site.line);
  const std::string header(callee.empty() ? std::string_view()
                                          : program::comprehension_calling(statement, callee));
  const std::size_t over = header.find(kIn);
  if (over == std::string::npos) {
    return std::nullopt;
  }
  return Comprehension{
      .where = site, .header = header, .iterable = header.substr(over + kIn.size())};
}

}  // namespace ddpdoctor::detectors
