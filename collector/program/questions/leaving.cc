// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/leaving.h"

#include <algorithm>
#include <array>

#include "collector/program/syntax/bindings.h"
#include "collector/program/syntax/whole_text.h"

namespace ddpdoctor::program {
namespace {

Exits never() {
  return {.falls = false};
}

void add(Exits& all, const Exits& more) {
  all.falls = all.falls || more.falls;
  all.breaks = all.breaks || more.breaks;
  all.continues = all.continues || more.continues;
  all.returns = all.returns || more.returns;
  all.raises = all.raises || more.raises;
  all.ends = all.ends || more.ends;
}

bool ends_process(Node statement) {
  constexpr std::array<std::string_view, 5> kEnds = {"sys.exit", "exit", "quit", "os._exit",
                                                     "os.abort"};
  const Node call = statement.first_child();
  const std::string callee =
      call.is(NodeKind::kCall) ? dotted_name(call.field(Field::kFunction)) : std::string();
  return std::find(kEnds.begin(), kEnds.end(), callee) != kEnds.end();
}

Node block_in(Node node) {
  for (Node child = node.first_child(); child; child = child.next_sibling()) {
    if (child.is(NodeKind::kBlock)) {
      return child;
    }
  }
  return {};
}

Node clause_of(Node node, NodeKind kind) {
  for (Node child = node.first_child(); child; child = child.next_sibling()) {
    if (child.is(kind)) {
      return child;
    }
  }
  return {};
}

/// The union over if, elif and else.
Exits of_chain(Node node) {
  Exits out = exits_of(block_in(node));
  for (Node child = node.first_child(); child; child = child.next_sibling()) {
    if (is_clause(child.kind())) {
      add(out, exits_of(block_in(child)));
    }
  }
  out.falls = out.falls || !clause_of(node, NodeKind::kElse);
  return out;
}

Exits of_match(Node node) {
  Exits out = never();
  bool any = false;
  const Node body = node.field(Field::kBody);
  for (Node one = body.first_child(); one; one = one.next_sibling()) {
    if (one.is(NodeKind::kCase)) {
      add(out, exits_of(block_in(one)));
      any = any || (!one.field(Field::kGuard) && one.first_child().text() == "_");
    }
  }
  out.falls = out.falls || !any;
  return out;
}

Exits of_loop(Node node) {
  const Exits body = exits_of(block_in(node));
  const Node condition = node.field(Field::kCondition);
  const bool for_ever = node.is(NodeKind::kWhile) && condition.is(NodeKind::kTrue);
  Exits out = body;
  out.falls = !for_ever || body.breaks;
  out.breaks = out.continues = false;
  return out;
}

Exits of_try(Node node) {
  Exits out = exits_of(block_in(node));
  if (const Node otherwise = clause_of(node, NodeKind::kElse); otherwise && out.falls) {
    out.falls = false;
    add(out, exits_of(block_in(otherwise)));
  }
  bool catches = false;
  Exits caught = never();
  for (Node child = node.first_child(); child; child = child.next_sibling()) {
    if (child.is(NodeKind::kExcept)) {
      catches = true;
      add(caught, exits_of(block_in(child)));
    }
  }
  out.raises = out.raises && !catches;
  add(out, caught);
  if (const Node last = clause_of(node, NodeKind::kFinally)) {
    const Exits always = exits_of(block_in(last));
    return always.falls ? out : always;
  }
  return out;
}

/// An unknown header may have been an `if`.
Exits of_with(Node node) {
  Exits out = exits_of(block_in(node));
  out.falls = out.falls || node.first_child().text() == kUnknownName;
  return out;
}

Exits of_statement(Node node) {
  switch (node.kind()) {
    case NodeKind::kReturn:
      return {.falls = false, .returns = true};
    case NodeKind::kRaise:
      return {.falls = false, .raises = true};
    case NodeKind::kBreak:
      return {.falls = false, .breaks = true};
    case NodeKind::kContinue:
      return {.falls = false, .continues = true};
    case NodeKind::kExpressionStatement:
      return {.falls = !ends_process(node), .ends = ends_process(node)};
    case NodeKind::kIf:
      return of_chain(node);
    case NodeKind::kMatch:
      return of_match(node);
    case NodeKind::kFor:
    case NodeKind::kWhile:
      return of_loop(node);
    case NodeKind::kTry:
      return of_try(node);
    case NodeKind::kWith:
      return of_with(node);
    default:
      return {};
  }
}

bool is_branch_header(NodeKind kind) {
  return kind == NodeKind::kIf || kind == NodeKind::kElif || kind == NodeKind::kElse;
}

/// The last statement of a suite is itself a branch: its suites decide how control leaves.
bool ends_with_branches(const Code& code, std::size_t header) {
  Node last;
  const Node suite = code.suite(header);
  for (Node child = suite.first_child(); child; child = child.next_sibling()) {
    last = child;
  }
  return last.is(NodeKind::kIf);
}

/// A header between `outer` and `i`, whose own suite leaves, decides instead.
bool is_in_exit_branch(const Code& code, std::size_t i, std::size_t outer) {
  for (i = code.parent(i); i != kNone && i != outer; i = code.parent(i)) {
    if (is_exit_branch(code, i)) {
      return true;
    }
  }
  return false;
}

bool is_in_suite_of_chain(const Code& code, std::size_t i, std::size_t of) {
  for (; i != kNone; i = code.parent(i)) {
    if (i != of && code.same_chain(i, of)) {
      return true;
    }
  }
  return false;
}

}  // namespace

/// The depth of a Tree bounds the recursion.
Exits exits_of(Node suite) {
  Exits out;
  for (Node child = suite.first_child(); child && out.falls; child = child.next_sibling()) {
    out.falls = false;
    add(out, of_statement(child));
  }
  return out;
}

Leaving leaving_of(const Code& code, std::size_t header) {
  const Exits exits = exits_of(code.suite(header));
  if (exits.falls) {
    return Leaving::kNothing;
  }
  if (exits.continues) {
    return Leaving::kContinue;
  }
  if (exits.breaks) {
    return Leaving::kBreak;
  }
  return exits.returns || exits.ends ? Leaving::kFunction : Leaving::kNothing;
}

bool always_fails(const Code& code, std::size_t header) {
  const Exits exits = exits_of(code.suite(header));
  return (exits.raises || exits.ends) && !exits.falls && !exits.returns && !exits.breaks &&
         !exits.continues;
}

bool is_exit_branch(const Code& code, std::size_t statement) {
  return is_branch_header(code.kind(statement)) && leaving_of(code, statement) != Leaving::kNothing;
}

std::vector<std::size_t> exits_between(const Code& code, std::size_t header, std::size_t before,
                                       std::size_t statement) {
  std::vector<std::size_t> out;
  const std::size_t function = code.function_around(statement);
  for (std::size_t i = before; i-- > (header == kNone ? 0 : header + 1);) {
    if (!is_exit_branch(code, i) || code.function_around(i) != function ||
        is_in_suite_of_chain(code, i, before) || is_in_exit_branch(code, i, header)) {
      continue;
    }
    const std::size_t loop = code.loop_around(i);
    const bool same_loop = loop != kNone && code.encloses(loop, statement);
    if (leaving_of(code, i) == Leaving::kFunction || same_loop) {
      out.push_back(i);
    }
  }
  return out;
}

std::vector<std::size_t> ways_out_of(const Code& code, std::size_t loop) {
  std::vector<std::size_t> out;
  const std::size_t function = code.function_around(loop);
  const std::size_t end = code.end_of_suite(loop);
  for (std::size_t i = loop + 1; i < end; ++i) {
    if (!is_exit_branch(code, i) || code.function_around(i) != function ||
        ends_with_branches(code, i)) {
      continue;
    }
    const Leaving leaving = leaving_of(code, i);
    const bool own_break = leaving == Leaving::kBreak && code.loop_around(i) == loop;
    if (own_break || leaving == Leaving::kFunction) {
      out.push_back(i);
    }
  }
  return out;
}

}  // namespace ddpdoctor::program
