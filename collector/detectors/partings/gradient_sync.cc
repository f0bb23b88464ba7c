// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/gradient_sync.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/text.h"
#include "collector/detectors/call_sites/source_blocks.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

using python_source::Block;
using python_source::Dependence;

std::optional<Branch> choice_at(const std::string& file, const python_source::Lines& lines,
                                int line) {
  for (const Block& block : python_source::deciding_branches(lines, line)) {
    const Dependence on = python_source::dependence(block.condition, lines, block.line);
    if (on == Dependence::kNone || is_uniform(block.condition)) {
      continue;
    }
    const std::string function = function_around(lines, line);
    return Branch{.where = {.file = file, .line = block.line, .function = function},
                  .condition = block.condition,
                  .on = on,
                  .leads_to_ours = false,
                  .guarded = {.file = file, .line = line, .function = function}};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Branch> own_choice_of_sync(const model::JobModel& job, const Path& path) {
  std::set<std::string> files;
  for (const model::CallSite& site : path) {
    files.insert(site.file);
  }
  for (const std::string& file : files) {
    const python_source::Lines& lines = lines_of(job, file);
    for (const auto& [number, text] : lines) {
      const bool code = !base::trim(text).starts_with("#");
      if (!code || text.find(".no_sync(") == std::string::npos) {
        continue;
      }
      if (auto choice = choice_at(file, lines, number)) {
        return choice;
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
      const std::vector<python_source::Block> around = python_source::enclosing(lines, number);
      const bool in_forward =
          std::any_of(around.begin(), around.end(), [](const python_source::Block& block) {
            return block.kind == python_source::BlockKind::kFunction &&
                   block.text.find("forward") != std::string::npos;
          });
      if (!in_forward || python_source::always_fails(lines, number)) {
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
