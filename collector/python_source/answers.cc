// SPDX-License-Identifier: Apache-2.0
#include "collector/python_source/answers.h"

#include <algorithm>

#include "collector/python_source/assignments.h"
#include "collector/python_source/clauses.h"
#include "collector/python_source/exits.h"

namespace ddpdoctor::python_source {
namespace {

/// The name in `x is None`, `not x`, or, with `present`, in `x is not None`, `x`; empty for any
/// other condition.
std::string_view tested_name(Tokens condition, bool present) {
  if (!condition.empty() && condition.front().is("not")) {
    return !present && condition.size() == 2 && condition[1].kind == TokenKind::kName
               ? condition[1].text
               : std::string_view();
  }
  const bool named = !condition.empty() && condition.front().kind == TokenKind::kName;
  const bool bare = condition.size() == 1;
  const bool is_none = condition.size() == 3 && condition[1].is("is") && condition[2].is("None");
  const bool is_not_none = condition.size() == 4 && condition[1].is("is") &&
                           condition[2].is("not") && condition[3].is("None");
  return named && (present ? bare || is_not_none : is_none) ? condition.front().text
                                                            : std::string_view();
}

/// "loss" of `self.loss(x)`; empty when the expression is more than one call.
std::string_view called_alone(Tokens value) {
  const auto chains = name_chains(value);
  const bool one_call =
      !chains.empty() && chains.front().begin == 0 && chains.front().end < value.size() &&
      value[chains.front().end].is("(") && value.back().is(")") &&
      find_token(value.subspan(chains.front().end + 1), ")", value[chains.front().end].depth) ==
          value.size() - chains.front().end - 2;
  return one_call ? chains.front().words.back() : std::string_view();
}

/// The function whose answer `name` is when it is tested at `statement`.
std::string_view helper_of(const Structure& structure, std::string_view name,
                           std::size_t statement) {
  std::string_view helper;
  for (const Assignment& one :
       assignments_of(structure, name, structure.function_around(statement))) {
    if (one.statement < statement) {
      helper = called_alone(one.value);
    }
  }
  return helper;
}

bool answers_none(Tokens statement) {
  return !statement.empty() && statement.front().is("return") &&
         (statement.size() == 1 || (statement.size() == 2 && statement[1].is("None")));
}

}  // namespace

std::vector<NoneTest> none_tests_before(const Lines& lines, int line) {
  const Structure& structure = structure_of(lines);
  const std::size_t at = structure.at(line);
  std::vector<NoneTest> out;
  if (at == kNowhere) {
    return out;
  }
  const std::size_t function = structure.function_around(at);
  for (std::size_t i = at; i-- > 0;) {
    if (i == function) {
      break;
    }
    const Statement& statement = structure.statements[i];
    if (statement.kind != BlockKind::kIf || structure.function_around(i) != function) {
      continue;
    }
    const bool around = structure.encloses(i, at);
    const std::size_t loop = loop_of(structure, i);
    const Leaving leaving = leaving_of(structure, i);
    const bool leaves =
        leaving == Leaving::kFunction ||
        (leaving == Leaving::kContinue && loop != kNowhere && structure.encloses(loop, at));
    const std::string_view name =
        around || leaves ? tested_name(statement.header(), around) : std::string_view();
    const std::string_view helper =
        name.empty() ? std::string_view() : helper_of(structure, name, i);
    if (!helper.empty()) {
      out.push_back({.test = block_of(structure, i), .helper = std::string(helper)});
    }
  }
  return out;
}

std::optional<Block> clause_that_answers_none(const Lines& lines, std::string_view name) {
  const Structure& structure = structure_of(lines);
  for (std::size_t i = 0; i < structure.statements.size(); ++i) {
    if (structure.statements[i].kind != BlockKind::kExcept) {
      continue;
    }
    const std::size_t function = structure.function_around(i);
    const bool wanted =
        function != kNowhere &&
        structure.statements[function].keyword + 1 <
            structure.statements[function].tokens().size() &&
        structure.statements[function].tokens()[structure.statements[function].keyword + 1].text ==
            name;
    const std::size_t last =
        structure.statements[i].has_inline_body() ? i : structure.last_in_suite(i);
    if (wanted && last != kNowhere && answers_none(structure.statements[last].body()) &&
        catches_failures(block_of(structure, i))) {
      return block_of(structure, i);
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::python_source
