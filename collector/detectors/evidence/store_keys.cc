// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/store_keys.h"

#include <algorithm>

#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/expressions.h"
#include "collector/program/questions/method_calls.h"
#include "collector/program/questions/strings.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kMostGuards = 2;

/// The fixed parts, in order: "plan/" and "/part" of `plan/{step}/part`.
std::vector<std::string_view> certain_parts(std::string_view literal) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t open = literal.find('{');
    const std::size_t close = open == literal.npos ? open : literal.find('}', open);
    parts.push_back(literal.substr(0, close == literal.npos ? close : open));
    if (close == literal.npos) {
      return parts;
    }
    literal.remove_prefix(close + 1);
  }
}

bool fits(std::string_view text, const std::vector<std::string_view>& parts) {
  if (parts.size() == 1) {
    return text == parts.front();
  }
  if (!text.starts_with(parts.front())) {
    return false;
  }
  std::size_t at = parts.front().size();
  for (std::size_t i = 1; i + 1 < parts.size(); ++i) {
    const std::size_t next = text.find(parts[i], at);
    if (next == text.npos) {
      return false;
    }
    at = next + parts[i].size();
  }
  return text.size() > at && text.substr(at).ends_with(parts.back());
}

/// Only the start of the key is known: "plan/" of `plan/{step}`.
bool begins_as(std::string_view literal, std::string_view key) {
  const std::size_t open = literal.find('{');
  return open != literal.npos && open > 1 && literal.substr(0, open) == key;
}

/// The only line that calls a function; unknown if no line or several lines do.
model::CallSite only_call_of(const model::JobModel& job, std::string_view function) {
  model::CallSite found;
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, text] : lines) {
      const std::size_t at = text.find(function);
      const bool near = at != text.npos && text.find("def ") == text.npos &&
                        text.find('(', at) == at + function.size();
      if (!near) {
        continue;
      }
      if (found.known()) {
        return {};
      }
      found = {.file = file, .line = number, .function = {}};
    }
  }
  return found;
}

/// Adds the conditions around a line of a function.
void add_guards(const model::JobModel& job, const model::CallSite& site,
                std::vector<model::CallSite>& guards) {
  for (const program::Block& block :
       program::deciding_branches(lines_of(job, site.file), site.line)) {
    if (!is_loop(block) && guards.size() < kMostGuards) {
      guards.push_back({.file = site.file, .line = block.line, .function = {}});
    }
  }
}

}  // namespace

std::vector<KeyCall> calls_that_set_keys(const model::JobModel& job,
                                         const program::SourceText& lines) {
  std::vector<KeyCall> out;
  for (const program::MethodCall& one :
       program::calls_that(lines, job.sources, program::MethodDoes::kSetsKey)) {
    out.push_back({.line = one.call.line(), .text = one.call.one_line()});
  }
  return out;
}

std::string_view written_part(std::string_view key, std::string_view literal) {
  const auto parts = certain_parts(literal);
  const bool says_something = std::any_of(parts.begin(), parts.end(),
                                          [](std::string_view part) { return part.size() > 1; });
  for (std::size_t start = 0; says_something && start < key.size();) {
    if (fits(key.substr(start), parts)) {
      return key.substr(start);
    }
    const std::size_t slash = key.find('/', start);
    start = slash == key.npos ? key.size() : slash + 1;
  }
  return {};
}

std::string as_written(const model::JobModel& job, const std::string& key,
                       const graph::Standing& waiter) {
  for (const model::CallSite& site : waiter.callers) {
    const auto strings = program::strings_of(lines_of(job, site.file), site.line, job.sources);
    for (const std::string& literal : strings) {
      if (const auto part = written_part(key, literal); !part.empty()) {
        return std::string(part);
      }
    }
  }
  return key;
}

std::optional<KeySetter> setter_by_string(const model::JobModel& job, std::string_view key) {
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, text] : calls_that_set_keys(job, lines)) {
      const auto strings = program::strings_of(lines, number, job.sources);
      if (std::none_of(strings.begin(), strings.end(), [key](std::string_view literal) {
            return !written_part(key, literal).empty() || begins_as(literal, key);
          })) {
        continue;
      }
      const std::string function(function_around(lines, number));
      KeySetter out{.where = {.file = file, .line = number, .function = function}};
      add_guards(job, out.where, out.guards);
      if (const auto call = function.empty() ? model::CallSite{} : only_call_of(job, function);
          call.known()) {
        add_guards(job, call, out.guards);
      }
      return out;
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors
