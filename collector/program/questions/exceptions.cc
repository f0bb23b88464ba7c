// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/exceptions.h"

#include <algorithm>
#include <array>

#include "collector/program/questions/block_of.h"
#include "collector/program/questions/catching.h"
#include "collector/program/questions/fragment.h"
#include "collector/program/questions/leaving.h"
#include "collector/program/questions/names.h"
#include "collector/program/questions/swallowing_contexts.h"

namespace ddpdoctor::program {
namespace {

/// The exception says that something is absent or that a user wants to stop; it is not a failure of
/// a step.
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

}  // namespace

std::vector<Block> swallowing_clauses(const SourceText& text, int line, const Sources& sources) {
  const Code code(text);
  const std::size_t at = code.at(line);
  std::vector<Block> out;
  for (const std::size_t header :
       at == kNone ? std::vector<std::size_t>() : code.headers_around(at)) {
    if (code.kind(header) == NodeKind::kWith &&
        (suppresses(code, header) || is_caught_by_context(code, header, text, sources))) {
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

std::optional<Block> failure_clause_at(const SourceText& text, int line) {
  const Code code(text);
  const std::size_t at = code.header_at(line);
  return at != kNone && code.kind(at) == NodeKind::kExcept && names_a_failure(caught_by(code, at))
             ? std::optional(block_of(code, at))
             : std::nullopt;
}

}  // namespace ddpdoctor::program
