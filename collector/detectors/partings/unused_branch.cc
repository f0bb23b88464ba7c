// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/unused_branch.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include "base/text.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/exits.h"
#include "collector/program/syntax/source_index.h"

namespace ddpdoctor::detectors {
namespace {

using program::Node;
using program::NodeKind;

/// The attributes on the way to the parameters: "photos", "encode" and "bias", without numbers of a
/// list.
std::set<std::string, std::less<>> attributes_of(const std::vector<std::string>& names) {
  std::set<std::string, std::less<>> out;
  for (const std::string& name : names) {
    for (const std::string_view part : base::split(name, '.')) {
      if (!part.empty() && std::isdigit(static_cast<unsigned char>(part.front())) == 0) {
        out.emplace(part);
      }
    }
  }
  return out;
}

/// Lines that use one of these attributes of `self`.
void add_uses(Node node, const std::set<std::string, std::less<>>& attributes,
              std::set<int>& lines) {
  if (node.is(NodeKind::kAttribute) && node.field(program::Field::kObject).text() == "self" &&
      attributes.contains(node.field(program::Field::kAttribute).text())) {
    lines.insert(node.line());
  }
  for (Node child = node.first_child(); child; child = child.next_sibling()) {
    add_uses(child, attributes, lines);
  }
}

}  // namespace

std::optional<model::CallSite> branch_around_parameters(const model::JobModel& job,
                                                        const std::vector<std::string>& names) {
  const auto attributes = attributes_of(names);
  std::set<model::CallSite> own;
  std::set<model::CallSite> any;
  for (const auto& [file, lines] : job.sources) {
    const program::SourceIndex& index = program::index_of(lines);
    if (attributes.empty() || index.empty() || !model::is_user_file(file)) {
      continue;
    }
    std::set<int> uses;
    add_uses(index.root(), attributes, uses);
    for (const int line : uses) {
      const std::string function = function_around(lines, line);
      if (function == "__init__") {
        continue;
      }
      for (const program::Block& block : program::deciding_branches(lines, line)) {
        if (is_loop(block) || block.condition.empty() || program::always_fails(lines, block.line) ||
            dependence_of(job, lines, block) == program::Dependence::kNone) {
          continue;
        }
        const model::CallSite site{.file = file, .line = block.line, .function = function};
        any.insert(site);
        if (reads_own(job, lines, block)) {
          own.insert(site);
        }
      }
    }
  }
  const auto& found = own.size() == 1 ? own : any;
  return found.size() == 1 ? std::optional(*found.begin()) : std::nullopt;
}

}  // namespace ddpdoctor::detectors
