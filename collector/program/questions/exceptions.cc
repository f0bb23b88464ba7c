// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/exceptions.h"

#include <algorithm>
#include <array>

#include "collector/program/questions/block_of.h"
#include "collector/program/questions/catching.h"
#include "collector/program/questions/fragment.h"
#include "collector/program/questions/leaving.h"
#include "collector/program/questions/names.h"

namespace ddpdoctor::program {
namespace {

/// Says that a thing is not there or that somebody wants to leave; no failure of a step.
bool is_no_failure(std::string_view exception) {
  constexpr std::array<std::string_view, 6> kOthers = {"KeyboardInterrupt",   "SystemExit",
                                                       "GeneratorExit",       "ImportError",
                                                       "ModuleNotFoundError", "Full"};
  return is_end_of_data(exception) ||
         std::find(kOthers.begin(), kOthers.end(), exception) != kOthers.end();
}

bool names_a_failure(const std::vector<std::string_view>& caught) {
  return caught.empty() || !std::all_of(caught.begin(), caught.end(), is_no_failure);
}

/// `with contextlib.suppress(RuntimeError)`.
bool suppresses(const Code& code, std::size_t with) {
  bool found = false;
  for (const Node part : code.own_parts(with)) {
    each_inside(part, [&found](Node node) {
      const Node callee = node.is(NodeKind::kCall) ? node.field(Field::kFunction) : Node();
      const Node name = callee.is(NodeKind::kAttribute) ? callee.field(Field::kAttribute) : callee;
      found = found || (name.text() == "suppress" &&
                        names_a_failure(exceptions_in(node.field(Field::kArguments))));
    });
  }
  return found;
}

/// The name in `x is None`, `not x`, or, with `present`, in `x is not None`, `x`; empty for any
/// other condition.
std::string_view tested_name(Node condition, bool present) {
  condition = without_parentheses(condition);
  if (condition.is(NodeKind::kNot)) {
    const Node name = condition.first_child();
    return !present && name.is(NodeKind::kName) ? name.text() : std::string_view();
  }
  if (condition.is(NodeKind::kName)) {
    return present ? condition.text() : std::string_view();
  }
  const auto sides = condition.children();
  const bool with_none = condition.is(NodeKind::kComparison) && sides.size() == 2 &&
                         sides[0].is(NodeKind::kName) && sides[1].is(NodeKind::kNone);
  const std::string_view how = condition.field(Field::kOperators).text();
  return with_none && how == (present ? "is not" : "is") ? sides[0].text() : std::string_view();
}

/// "loss" of `self.loss(x)`; empty when the expression is more than one call.
std::string_view called_alone(Node value) {
  const Node callee = value.is(NodeKind::kCall) ? value.field(Field::kFunction) : Node();
  return callee.is(NodeKind::kName)        ? callee.text()
         : callee.is(NodeKind::kAttribute) ? callee.field(Field::kAttribute).text()
                                           : std::string_view();
}

/// The function whose answer `name` is when it is tested at `statement`.
std::string_view helper_of(const Code& code, std::string_view name, std::size_t statement) {
  std::string_view helper;
  for (const Binding& one : values_of(code, name, code.function_around(statement))) {
    if (one.statement < statement) {
      helper = called_alone(one.value);
    }
  }
  return helper;
}

bool answers_none(Node statement) {
  const Node value = statement.first_child();
  return statement.is(NodeKind::kReturn) && (!value || value.is(NodeKind::kNone));
}

Node last_of(Node suite) {
  Node last;
  for (Node child = suite.first_child(); child; child = child.next_sibling()) {
    last = child;
  }
  return last;
}

}  // namespace

std::vector<Block> swallowing_clauses(const SourceText& text, int line) {
  const Code code(text);
  const std::size_t at = code.at(line);
  std::vector<Block> out;
  for (const std::size_t header :
       at == kNone ? std::vector<std::size_t>() : code.headers_around(at)) {
    if (code.kind(header) == NodeKind::kWith && suppresses(code, header)) {
      out.push_back(block_of(code, header));
    }
    if (code.kind(header) != NodeKind::kTry) {
      continue;
    }
    for (const std::size_t clause : code.clauses(header)) {
      if (code.kind(clause) == NodeKind::kExcept && names_a_failure(caught_by(code, clause)) &&
          !always_fails(code, clause)) {
        out.push_back(block_of(code, clause));
        break;
      }
    }
  }
  return out;
}

bool catches_failures(const Block& clause) {
  const Fragment caught(clause.condition);
  Node expression = caught.expression();
  expression = expression.is(NodeKind::kAsPattern) ? expression.first_child() : expression;
  return names_a_failure(exceptions_in(expression));
}

std::optional<Block> retry_loop(const SourceText& text, int line) {
  const Code code(text);
  const std::size_t at = code.at(line);
  bool in_clause = false;
  for (const std::size_t header :
       at == kNone ? std::vector<std::size_t>() : code.headers_around(at)) {
    if (in_clause && code.is_loop(header)) {
      return block_of(code, header);
    }
    if (code.kind(header) != NodeKind::kExcept) {
      continue;
    }
    const Exits exits = exits_of(code.suite(header));
    if (!exits.falls && !exits.continues) {
      return std::nullopt;
    }
    in_clause = true;
  }
  return std::nullopt;
}

std::vector<NoneTest> none_tests_before(const SourceText& text, int line) {
  const Code code(text);
  const std::size_t at = code.at(line);
  std::vector<NoneTest> out;
  if (at == kNone) {
    return out;
  }
  const std::size_t function = code.function_around(at);
  for (std::size_t i = at; i-- > 0 && i != function;) {
    if (code.kind(i) != NodeKind::kIf || code.function_around(i) != function) {
      continue;
    }
    const bool around = code.encloses(i, at);
    const std::size_t loop = code.loop_around(i);
    const Leaving leaving = leaving_of(code, i);
    const bool leaves = leaving == Leaving::kFunction ||
                        (leaving == Leaving::kContinue && loop != kNone && code.encloses(loop, at));
    const std::string_view name = around || leaves
                                      ? tested_name(code[i].node.field(Field::kCondition), around)
                                      : std::string_view();
    const std::string_view helper = name.empty() ? std::string_view() : helper_of(code, name, i);
    if (!helper.empty()) {
      out.push_back({.test = block_of(code, i), .helper = std::string(helper)});
    }
  }
  return out;
}

std::optional<Block> clause_that_answers_none(const SourceText& text, std::string_view name) {
  const Code code(text);
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (code.kind(i) != NodeKind::kExcept) {
      continue;
    }
    const std::size_t function = code.function_around(i);
    if (function != kNone && code[function].node.field(Field::kName).text() == name &&
        answers_none(last_of(code.suite(i))) && names_a_failure(caught_by(code, i))) {
      return block_of(code, i);
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::program
