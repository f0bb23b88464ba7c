// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/used_twice.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/text.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/expressions.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::detectors {
namespace {

using program::Call;
using program::last_name;

constexpr std::size_t kMostPlaces = 8;
constexpr std::string_view kSelf = "self.";

struct Use {
  model::CallSite place;
  std::string module;  // "self.block": the module that is checkpointed or called
};

/// The whole statement that starts on a line; empty for a continuation line.
std::string statement_of(const program::SourceText& lines, int line) {
  const auto at = lines.find(line);
  const std::string text = program::statement_at(lines, line);
  const std::string_view first = at == lines.end() ? std::string_view() : base::trim(at->second);
  return !first.empty() && first.front() != '#' && text.starts_with(first) ? text : std::string();
}

model::CallSite site(const program::SourceText& lines, const std::string& file, int line) {
  return {.file = file, .line = line, .function = function_around(lines, line)};
}

/// checkpoint(f, x) without use_reentrant=False, whose default is True.
bool is_reentrant(const Call& call) {
  const std::string_view name = last_name(call.callee);
  if (name != "checkpoint" && name != "checkpoint_sequential") {
    return false;
  }
  const auto& passed = call.arguments;
  return !passed.empty() &&
         std::none_of(passed.begin(), passed.end(), [](std::string_view argument) {
           return argument.find("use_reentrant") != argument.npos &&
                  argument.find("True") == argument.npos;
         });
}

std::vector<Use> checkpoints_in(const std::string& file, const program::SourceText& lines) {
  std::vector<Use> found;
  for (const auto& [line, ignored] : lines) {
    const std::string text = statement_of(lines, line);
    if (text.find("checkpoint") == std::string::npos) {
      continue;
    }
    for (const Call& call : program::calls_in(text)) {
      if (is_reentrant(call)) {
        const auto& passed = call.arguments;
        found.push_back({.place = site(lines, file, line), .module = std::string(passed.front())});
      }
    }
  }
  return found;
}

/// Calls of the object's own modules in a function `forward`, by function and module.
std::map<std::pair<int, std::string>, std::vector<Use>> calls_of_modules(
    const std::string& file, const program::SourceText& lines) {
  std::map<std::pair<int, std::string>, std::vector<Use>> found;
  for (const auto& [line, ignored] : lines) {
    const std::string text = statement_of(lines, line);
    if (text.starts_with("def ") || text.find(kSelf) == text.npos ||
        last_name(function_around(lines, line)) != "forward") {
      continue;
    }
    const auto extent = program::function_extent(lines, line);
    for (const Call& call : program::calls_in(text)) {
      const bool own =
          call.callee.starts_with(kSelf) && call.callee.find('.', kSelf.size()) == call.callee.npos;
      if (own && extent) {
        const std::string module(call.callee);
        found[{extent->first, module}].push_back(
            {.place = site(lines, file, line), .module = module});
      }
    }
  }
  return found;
}

/// "block.0.weight" after "with name "; empty if the message names none.
std::string_view parameter_in(std::string_view message) {
  constexpr std::string_view kName = "with name ";
  const std::size_t at = message.find(kName);
  if (at == message.npos) {
    return {};
  }
  const std::string_view rest = message.substr(at + kName.size());
  return rest.substr(0, rest.find(' '));
}

/// "self.block" contains "module.block.0.weight".
bool leads_to(const Use& use, std::string_view parameter) {
  const std::string name = "." + std::string(last_name(use.module)) + ".";
  return ("." + std::string(parameter)).find(name) != std::string::npos;
}

void keep_those_of(std::string_view parameter, std::vector<Use>& uses) {
  std::vector<Use> of_it;
  std::copy_if(uses.begin(), uses.end(), std::back_inserter(of_it),
               [parameter](const Use& use) { return leads_to(use, parameter); });
  if (!parameter.empty() && !of_it.empty()) {
    uses = std::move(of_it);
  }
}

std::vector<model::CallSite> places_of(const std::vector<Use>& uses) {
  std::vector<model::CallSite> places;
  for (const Use& use : uses) {
    if (places.size() < kMostPlaces) {
      places.push_back(use.place);
    }
  }
  return places;
}

}  // namespace

UsedTwice used_twice(const model::JobModel& job, const std::string& message) {
  const std::string_view parameter = parameter_in(message);
  std::vector<Use> checkpoints;
  std::vector<std::vector<Use>> repeated;
  for (const auto& [file, lines] : job.sources) {
    if (!model::is_user_file(file)) {
      continue;
    }
    const auto here = checkpoints_in(file, lines);
    checkpoints.insert(checkpoints.end(), here.begin(), here.end());
    for (auto& [where, uses] : calls_of_modules(file, lines)) {
      const bool named = parameter.empty() || leads_to(uses.front(), parameter);
      if (uses.size() > 1 && named) {
        repeated.push_back(std::move(uses));
      }
    }
  }
  keep_those_of(parameter, checkpoints);
  if (!checkpoints.empty()) {
    return {.places = places_of(checkpoints), .by_checkpoint = true, .module = {}};
  }
  // Several modules are used twice: unknown which one is the cause.
  return repeated.size() == 1 ? UsedTwice{.places = places_of(repeated.front()),
                                          .by_checkpoint = false,
                                          .module = repeated.front().front().module}
                              : UsedTwice{};
}

}  // namespace ddpdoctor::detectors
