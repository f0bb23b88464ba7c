// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/parting_words.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/user_call.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"

namespace ddpdoctor::detectors {
namespace {

// Longer conditions and statements are shortened in a sentence.
constexpr std::size_t kLongestQuote = 80;

}  // namespace

std::string in_backquotes(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return "`" + base::elide(text, kLongestQuote) + "`";
}

std::string waiting_call(const graph::Examination& examination, const Explanation& explanation) {
  const Parting& parting = explanation.parting;
  const graph::Standing* const standing = parting.rest.standing;
  if (standing != nullptr && standing->launched && standing->call &&
      standing->call->operation == parting.rest.operation) {
    return call_name(examination.job, *standing->call);  // its number is not known
  }
  return call_name(examination.job, parting.rest.operation, parting.group, parting.sequence);
}

std::string odd_place(const graph::Examination& examination, const Explanation& explanation) {
  const Side& odd = explanation.parting.odd;
  if (odd.calls() && !odd.site().known() && odd.call != nullptr) {
    return call_name(examination.job, *odd.call);
  }
  if (odd.calls()) {
    return call_in_words(examination.job, odd, explanation.parting.rest) + placed(odd.site());
  }
  return odd.standing != nullptr ? whereabouts(examination.job, *odd.standing) : place(odd.site());
}

std::string odd_does(const graph::Examination& examination, const Explanation& explanation) {
  const Side& odd = explanation.parting.odd;
  if (odd.calls()) {
    return fmt::format("{} called {}", said(odd.ranks),
                       call_in_words(examination.job, odd, explanation.parting.rest));
  }
  return odd.standing != nullptr ? whereabouts(examination.job, odd.ranks, *odd.standing)
                                 : ranks_do(odd.ranks, "was not observed", "were not observed");
}

std::string rest_waits(const graph::Examination& examination, const Explanation& explanation) {
  const Side& rest = explanation.parting.rest;
  if (rest.passed_its_call()) {
    return fmt::format("{} had no such call and continued", said(rest.ranks));
  }
  if (rest.calls()) {
    return fmt::format("{} {}", ranks_do(rest.ranks, "is waiting in", "are waiting in"),
                       rest.operation);
  }
  return rest.standing != nullptr ? whereabouts(examination.job, rest.ranks, *rest.standing)
                                  : ranks_do(rest.ranks, "was not observed", "were not observed");
}

std::string source_quote(const model::JobModel& job, const model::CallSite& site) {
  const auto line = model::source_line(job, site.file, site.line);
  if (!line || base::trim(*line).empty()) {
    return {};
  }
  return in_backquotes(std::string(base::trim(*line)));
}

std::string condition_quote(const Branch& branch) {
  return in_backquotes(branch.condition);
}

std::string conditions_quote(const Branch& branch) {
  std::string text = condition_quote(branch);
  for (const Test& other : branch.or_else) {
    text += " or " + in_backquotes(other.condition);
  }
  return text;
}

std::string conditions_placed(const Branch& branch) {
  std::string text = fmt::format("{} ({})", condition_quote(branch), line_of(branch.where));
  for (const Test& other : branch.or_else) {
    text += fmt::format(" or {} ({})", in_backquotes(other.condition), line_of(other.where));
  }
  return text;
}

std::string inside(const model::JobModel& job, const Branch& branch) {
  using program::BlockKind;
  if (branch.guarded.file != branch.where.file) {
    return {};
  }
  const program::SourceText& lines = lines_of(job, branch.where.file);
  for (const program::Block& block : program::enclosing(lines, branch.guarded.line)) {
    if (block.line != branch.where.line) {
      continue;
    }
    switch (block.kind) {
      case BlockKind::kIf:
      case BlockKind::kElif:
      case BlockKind::kWhile:
      case BlockKind::kFor:
      case BlockKind::kWith:
      case BlockKind::kMatch:
      case BlockKind::kCase:
        return block.within ? std::string()
                            : fmt::format("inside {} ({})", in_backquotes(block.text),
                                          line_of(branch.where));
      case BlockKind::kElse:
        return fmt::format("in the `else` of {} ({})", in_backquotes(block.condition),
                           line_of(branch.where));
      default:
        return {};
    }
  }
  return {};
}

const char* note_on(const Branch& branch) {
  const char* const decides =
      branch.or_else.empty() ? "decides which ranks call it" : "may decide which ranks call it";
  return branch.catches  ? "continues after an exception"
         : branch.skips  ? "skips the rest of the step"
         : branch.caches ? "returns a kept result without running the function"
                         : decides;
}

}  // namespace ddpdoctor::detectors
