// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/handed_decision.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"
#include "collector/program/origin/definitions.h"
#include "collector/program/questions/handed_over.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Examination;
using program::HandedOver;
using As = HandedOver::As;

constexpr std::size_t kMost = 3;

/// No line of the user's decides it, as far as the sources show.
bool is_unexplained(const Explanation& explanation) {
  if (explanation.branch) {
    return model::is_framework_file(explanation.branch->where.file);
  }
  return !explanation.callback && !explanation.dispatch &&
         (explanation.cause == Cause::kMissing || explanation.cause == Cause::kMismatchedOp ||
          explanation.cause == Cause::kDivergent);
}

bool is_in_framework(const Side& side) {
  return side.standing != nullptr && side.standing->thread != nullptr &&
         std::any_of(side.standing->thread->frames.begin(), side.standing->thread->frames.end(),
                     [](const model::Frame& frame) {
                       return frame.language == model::Language::kPython &&
                              model::is_framework_file(frame.file);
                     });
}

/// A file of a framework on the ranks' stacks names the item, the attribute, or calls the function.
bool is_known_there(const model::JobModel& job, const HandedOver& one) {
  return std::any_of(
      job.framework_sources.begin(), job.framework_sources.end(), [&one](const auto& source) {
        const auto& facts = program::facts_of(source.second);
        if (one.as == As::kValue) {
          return facts.calls.contains(one.name);
        }
        if (one.as == As::kAttribute) {
          return facts.attributes.contains(one.name) || facts.functions.contains(one.name);
        }
        const std::string single = fmt::format("'{}'", one.name);
        const std::string twice = fmt::format("\"{}\"", one.name);
        return std::any_of(source.second.begin(), source.second.end(), [&](const auto& line) {
          return line.second.find(twice) != std::string::npos ||
                 line.second.find(single) != std::string::npos;
        });
      });
}

/// How closely it is tied to what the framework tests; 0: not at all.
int weight(const model::JobModel& job, const HandedOver& one) {
  if (one.source == program::Source::kUnknown) {
    return 0;
  }
  switch (one.as) {
    case As::kItem:
    case As::kAttribute:
      return is_known_there(job, one) ? 3 : 0;
    case As::kNothing:
      return 2;
    case As::kCalled:
    case As::kFlag:  // perhaps a label among the data
      return 1;
    case As::kValue:
      return is_known_there(job, one) ? 1 : 0;
  }
  return 0;
}

std::vector<HandedOver> likeliest(const Examination& examination) {
  std::vector<HandedOver> out;
  int most = 1;
  for (const HandedOver& one : handed_over(examination)) {
    const int here = weight(examination.job, one);
    if (here > most) {
      out.clear();
      most = here;
    }
    const bool is_new = std::none_of(out.begin(), out.end(), [&one](const HandedOver& other) {
      return other.function == one.function && other.decides.file == one.decides.file;
    });
    if (here == most && is_new) {
      out.push_back(one);
    }
  }
  return out.size() > kMost ? std::vector<HandedOver>{} : out;
}

std::string note(const HandedOver& one) {
  switch (one.as) {
    case As::kItem:
      return fmt::format("each rank decides here whether the framework gets \"{}\"", one.name);
    case As::kAttribute:
      return fmt::format("each rank decides here whether `{}` is set", one.name);
    case As::kNothing:
      return "each rank decides here whether the framework gets None";
    case As::kCalled:
      return fmt::format("each rank decides here whether it calls {}()", one.name);
    case As::kFlag:
      return "each rank decides here which constant the framework gets";
    case As::kValue:
      return fmt::format("each rank has its own result of `{}`", one.name);
  }
  return {};
}

}  // namespace

const std::vector<HandedOver>& handed_over(const Examination& examination) {
  return examination.memo.once<std::vector<HandedOver>>(
      [&examination] { return program::handed_over(examination.job.sources); });
}

bool hands_over_decisions(const Examination& examination) {
  const std::vector<HandedOver> found = likeliest(examination);
  return std::any_of(found.begin(), found.end(), [](const HandedOver& one) {
    return one.as != As::kValue && one.as != As::kFlag;
  });
}

void add_handed_decisions(const Examination& examination, const Explanation& explanation,
                          Finding& finding) {
  const Parting& parting = explanation.parting;
  if (!is_unexplained(explanation) ||
      (!is_in_framework(parting.odd) && !is_in_framework(parting.rest))) {
    return;
  }
  std::string places;
  const std::vector<HandedOver> found = likeliest(examination);
  // Below one line of the user's, the only decision of the program's own says more than the lines
  // of the framework.
  const bool first = explanation.user_line.known() && found.size() == 1 &&
                     weight(examination.job, found.front()) > 1;
  for (const HandedOver& one : found) {
    const model::CallSite where{
        .file = one.decides.file, .line = one.decides.line, .function = one.function};
    finding.locations.insert(first ? finding.locations.begin() : finding.locations.end(),
                             location(where, {}, note(one)));
    places += fmt::format("{}{} ({})", places.empty() ? "" : " or ", named_function(one.function),
                          line_of(where));
  }
  if (!places.empty()) {
    finding.fix = fmt::format(
        "Make the decision in {} once for all ranks: all_reduce or broadcast it. The framework "
        "runs "
        "the same code on every rank; a decision of the program's own separated them.",
        places);
  }
}

}  // namespace ddpdoctor::detectors
