// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/gradient_sync.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/dependence.h"
#include "collector/program/questions/entered_contexts.h"
#include "collector/program/questions/exits.h"
#include "collector/program/questions/expressions.h"
#include "collector/program/questions/leaving.h"

namespace ddpdoctor::detectors {
namespace {

using program::Block;
using program::Dependence;

std::optional<Branch> choice_at(const model::JobModel& job, const Path& path,
                                const std::string& file, const program::SourceText& lines,
                                int line) {
  for (const Block& block : program::deciding_branches(lines, line)) {
    const program::Origin origin = origin_of(job, lines, block, path);
    const Dependence on = dependence_of(origin);
    if (is_loop(block) || on == Dependence::kNone) {
      continue;
    }
    const std::string function = function_around(lines, line);
    const int tested = block.tested == 0 ? block.line : block.tested;
    return Branch{.where = {.file = file, .line = tested, .function = function},
                  .condition = block.condition,
                  .on = on,
                  .leads_to_ours = false,
                  .guarded = {.file = file, .line = line, .function = function},
                  .defers = true,
                  .unproven = is_unproven(origin)};
  }
  return std::nullopt;
}

/// The functions of the contexts that the path is in: `with accumulator.micro(batch):`.
std::vector<program::FunctionLines> entered_on(const model::JobModel& job, const Path& path) {
  std::vector<program::FunctionLines> out;
  for (const model::CallSite& site : path) {
    for (auto& one : program::entered_around(lines_of(job, site.file), site.line, job.sources)) {
      out.push_back(std::move(one));
    }
  }
  return out;
}

bool is_in(const std::vector<program::FunctionLines>& functions, const std::string& file,
           int line) {
  return std::any_of(functions.begin(), functions.end(), [&](const auto& one) {
    return one.file == file && one.first <= line && line <= one.last;
  });
}

bool enters_no_sync(std::string_view line) {
  const std::string_view code = base::trim(line);
  return !code.starts_with("#") && code.find(".no_sync(") != std::string_view::npos;
}

}  // namespace

std::optional<Branch> own_choice_of_sync(const model::JobModel& job, const Path& path) {
  std::set<std::string> files;
  for (const model::CallSite& site : path) {
    files.insert(site.file);
  }
  const auto entered = entered_on(job, path);
  for (const bool on_path : {true, false}) {
    for (const auto& [file, lines] : job.sources) {
      for (const auto& [number, text] : lines) {
        if (files.contains(file) != on_path || !enters_no_sync(text) ||
            (!on_path && !is_in(entered, file, number))) {
          continue;
        }
        if (auto choice = choice_at(job, path, file, lines, number)) {
          return choice;
        }
      }
    }
  }
  return std::nullopt;
}

std::optional<model::CallSite> branch_in_forward(const model::JobModel& job) {
  std::optional<model::CallSite> found;
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, text] : lines) {
      const std::string_view header = base::trim(text);
      if (!header.starts_with("if ") || header.find("self.training") != std::string_view::npos) {
        continue;
      }
      // torch.nn.Module calls it by this name.
      const bool in_forward = program::last_name(function_around(lines, number)) == "forward";
      if (!in_forward || program::always_fails(lines, number)) {
        continue;
      }
      if (found) {
        return std::nullopt;
      }
      found = model::CallSite{.file = file, .line = number, .function = "forward"};
    }
  }
  return found;
}

}  // namespace ddpdoctor::detectors
