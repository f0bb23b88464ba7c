// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/store_keys.h"

#include <algorithm>
#include <utility>

#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
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

std::vector<KeyCall> calls_with_keys(const model::JobModel& job, const program::SourceText& lines,
                                     program::MethodDoes effect) {
  std::vector<KeyCall> out;
  for (const program::MethodCall& one : program::calls_that(lines, job.sources, effect)) {
    out.push_back({.line = one.call.line(), .text = one.call.one_line()});
  }
  return out;
}

/// A string in the statement at this line, or in a helper that makes its key, can produce the key.
bool names_key(const model::JobModel& job, const program::SourceText& lines, int line,
               std::string_view key) {
  const auto strings = program::strings_of(lines, line, job.sources);
  return std::any_of(strings.begin(), strings.end(), [key](std::string_view literal) {
    return !written_part(key, literal).empty() || begins_as(literal, key);
  });
}

/// `KEY = "plan/0"`: whether a line binds a name to a string, and the string.
std::pair<std::string_view, std::string_view> bound_string(std::string_view line) {
  const auto words = program::words_in(line);
  const bool binds = words.size() == 2 && words[1].size() > 2 &&
                     (words[1].front() == '"' || words[1].front() == '\'') &&
                     program::changes(line, words[0]);
  return binds ? std::pair(words[0], words[1].substr(1, words[1].size() - 2))
               : std::pair<std::string_view, std::string_view>();
}

/// The string that a constant of the program holds: "plan/0" of `self.KEY`.
std::string named_string(const model::JobModel& job, std::string_view name) {
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, text] : lines) {
      if (text.find(name) == std::string::npos) {
        continue;
      }
      const auto [bound, value] = bound_string(text);
      if (!bound.empty() && bound == name) {
        return std::string(value);
      }
    }
  }
  return {};
}

/// The first string in the call on the user's line: store.get("plan/0") → "plan/0", also through a
/// constant or a helper; for an f-string, the part before the first brace.
std::string key_in_source(const model::JobModel& job, const model::CallSite& site) {
  const std::string statement = program::statement_at(lines_of(job, site.file), site.line);
  for (const std::string_view call : {".get(", ".wait("}) {
    const std::size_t at = statement.find(call);
    const std::size_t open =
        at == std::string::npos ? at : statement.find_first_of("'\"", at + call.size());
    const std::size_t close =
        open == std::string::npos ? open : statement.find(statement[open], open + 1);
    if (close != std::string::npos) {
      const std::string text = statement.substr(open + 1, close - open - 1);
      return statement[open - 1] == 'f' ? text.substr(0, text.find('{')) : text;
    }
    for (const std::string_view name : program::values_read(
             at == std::string::npos ? std::string_view()
                                     : std::string_view(statement).substr(at + call.size()))) {
      if (auto key = named_string(job, name); !key.empty()) {
        return key;
      }
    }
    if (at == std::string::npos) {
      continue;
    }
    for (const std::string& made :
         program::strings_of(lines_of(job, site.file), site.line, job.sources)) {
      if (const std::string start = made.substr(0, made.find('{')); start.size() > 1) {
        return start;
      }
    }
  }
  return {};
}

/// The key as the user wrote it: torch puts "default_pg/0//" before the keys of its store.
std::string key_of_user(const std::string& key) {
  const std::size_t end = key.find("//");
  const std::size_t slash = end == std::string::npos ? end : key.rfind('/', end - 1);
  const bool numbered = slash != std::string::npos && slash + 1 < end &&
                        std::all_of(key.begin() + static_cast<std::ptrdiff_t>(slash) + 1,
                                    key.begin() + static_cast<std::ptrdiff_t>(end),
                                    [](char c) { return c >= '0' && c <= '9'; });
  return numbered && end + 2 < key.size() ? key.substr(end + 2) : key;
}

/// The part of a key before the rank or step in it: "address/" of "address/3".
std::string_view stem(std::string_view key) {
  const std::size_t digit = key.find_first_of("0123456789");
  return digit == std::string_view::npos || digit == 0 ? key : key.substr(0, digit);
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
  return calls_with_keys(job, lines, program::MethodDoes::kSetsKey);
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
      if (!names_key(job, lines, number, key)) {
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

std::string awaited_key(const model::JobModel& job, const graph::Standing& standing) {
  const model::WaitsOn* waits =
      standing.thread == nullptr ? nullptr : waits_on(*standing.thread, "store-key");
  const bool in_memory =
      waits != nullptr && !waits->target.empty() && !waits->target.starts_with("rank:");
  return in_memory ? key_of_user(waits->target) : key_in_source(job, standing.user);
}

std::optional<KeySetter> key_setter(const model::JobModel& job, std::string_view key) {
  if (key.empty()) {
    return std::nullopt;
  }
  if (auto found = setter_by_string(job, key)) {
    return found;
  }
  const auto names_it = [&](const std::string& line) {
    const auto words = program::words_in(line);
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return named_string(job, word) == key; });
  };
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, text] : calls_that_set_keys(job, lines)) {
      if (text.find(stem(key)) != std::string::npos || names_it(text)) {
        return KeySetter{.where = {.file = file, .line = number, .function = {}}};
      }
    }
  }
  return std::nullopt;
}

std::optional<model::CallSite> remover_by_string(const model::JobModel& job, std::string_view key) {
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, text] : calls_with_keys(job, lines, program::MethodDoes::kDropsKey)) {
      if (!key.empty() && names_key(job, lines, number, key)) {
        return model::CallSite{
            .file = file, .line = number, .function = std::string(function_around(lines, number))};
      }
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors
