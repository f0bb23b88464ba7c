// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/code.h"

#include <algorithm>

#include "base/text.h"
#include "collector/program/syntax/whole_text.h"

namespace ddpdoctor::program {
namespace {

/// The header ends at its colon.
std::uint32_t end_of_header(Node node) {
  std::uint32_t last = node.begin();
  for (const Node child : node.all_children()) {
    if (child.is(NodeKind::kToken) && child.text() == ":") {
      return child.begin();
    }
    if (child.is(NodeKind::kBlock) || is_clause(child.kind())) {
      break;
    }
    last = child.end();
  }
  return last;
}

std::uint32_t end_of_colon(Node node) {
  for (const Node child : node.all_children()) {
    if (child.is(NodeKind::kToken) && child.text() == ":") {
      return child.end();
    }
  }
  return end_of_header(node);
}

/// `try: unknown` was inserted by the repair; a header with its own suite on the next row was not.
bool is_made_up_suite(Node header, Node suite) {
  return suite.text() == kUnknownName &&
         header.text().substr(0, suite.begin() - header.begin()).find('\n') ==
             std::string_view::npos;
}

bool has_expression(NodeKind kind) {
  return kind != NodeKind::kElse && kind != NodeKind::kTry && kind != NodeKind::kFinally &&
         kind != NodeKind::kFunction && kind != NodeKind::kClass;
}

}  // namespace

Code::Code(const SourceText& text)
    : text_(text), index_(index_of(text)), all_(index_.statements()) {}

bool Code::is_made_up(std::size_t i) const {
  const Node node = all_[i].node;
  switch (node.kind()) {
    case NodeKind::kIf:
      return node.field(Field::kCondition).text() == kUnknownName;
    case NodeKind::kWith:
      return node.first_child().text() == kUnknownName;
    case NodeKind::kTry:
    case NodeKind::kFinally:
      return is_made_up_suite(node, suite(i));
    default:
      return node.text() == kUnknownName;
  }
}

std::size_t Code::at(int line) const {
  std::size_t i = text_.contains(line) ? index_.statement_at(line) : kNone;
  while (i != kNone && is_made_up(i)) {
    i = i > 0 && all_[i - 1].last_line >= line ? i - 1 : kNone;
  }
  return i;
}

std::size_t Code::header_at(int line) const {
  const std::size_t i = at(line);
  if (i == kNone || is_header(kind(i))) {
    return i;
  }
  const std::size_t around = parent(i);
  return around != kNone && all_[around].last_line >= all_[i].line ? around : kNone;
}

std::size_t Code::parent(std::size_t i) const {
  do {
    i = all_[i].parent;
  } while (i != kNone && is_made_up(i));
  return i;
}

std::vector<std::size_t> Code::headers_around(std::size_t i) const {
  std::vector<std::size_t> out;
  for (i = parent(i); i != kNone; i = parent(i)) {
    out.push_back(i);
    if (kind(i) == NodeKind::kFunction) {
      break;
    }
  }
  return out;
}

std::size_t Code::function_around(std::size_t i) const {
  do {
    i = parent(i);
  } while (i != kNone && kind(i) != NodeKind::kFunction);
  return i;
}

std::size_t Code::loop_around(std::size_t i) const {
  for (i = parent(i); i != kNone && kind(i) != NodeKind::kFunction; i = parent(i)) {
    if (is_loop(i)) {
      return i;
    }
  }
  return kNone;
}

Node Code::suite(std::size_t header) const {
  const Node node = all_[header].node;
  for (Node child = node.first_child(); child; child = child.next_sibling()) {
    if (child.is(NodeKind::kBlock)) {
      return child;
    }
  }
  return {};
}

std::size_t Code::end_of_suite(std::size_t header) const {
  std::size_t i = header + 1;
  while (i < all_[header].end && all_[i].owner != header) {
    i = all_[i].end;
  }
  return i;
}

std::size_t Code::owner(std::size_t i) const {
  return kind(i) == NodeKind::kCase ? parent(i) : all_[i].owner;
}

std::vector<std::size_t> Code::clauses(std::size_t header) const {
  std::vector<std::size_t> out;
  for (std::size_t i = header + 1; i < all_[header].end; i = all_[i].end) {
    if (owner(i) == header) {
      out.push_back(i);
    }
  }
  return out;
}

std::size_t Code::link_before(std::size_t clause) const {
  const std::size_t owner = all_[clause].owner;
  if (owner == kNone || kind(clause) == NodeKind::kCase) {
    return kNone;
  }
  std::size_t before = owner;
  for (const std::size_t one : clauses(owner)) {
    if (one == clause) {
      break;
    }
    before = one;
  }
  return is_made_up(before) ? kNone : before;
}

bool Code::same_chain(std::size_t a, std::size_t b) const {
  const auto root = [this](std::size_t i) { return owner(i) == kNone ? i : owner(i); };
  return root(a) == root(b);
}

std::string Code::header_text(std::size_t header) const {
  const Node node = all_[header].node;
  return node.one_line_until(end_of_header(node));
}

std::string Code::header_expression(std::size_t header) const {
  const Node node = all_[header].node;
  if (!has_expression(node.kind())) {
    return {};
  }
  const std::uint32_t end = end_of_header(node);
  const Node first = node.is(NodeKind::kFor) ? node.field(Field::kRight) : node.first_child();
  return first && first.begin() < end ? first.one_line_until(end) : std::string();
}

std::vector<Node> Code::own_parts(std::size_t i) const {
  const Node node = all_[i].node;
  if (!is_header(node.kind())) {
    return {node};
  }
  std::vector<Node> out;
  for (Node child = node.first_child(); child; child = child.next_sibling()) {
    if (!child.is(NodeKind::kBlock) && !is_clause(child.kind())) {
      out.push_back(child);
    }
  }
  return out;
}

std::string Code::logical_line(std::size_t i) const {
  if (all_[i].node.text() == kUnreadable) {
    const auto line = text_.find(all_[i].line);
    return std::string(line == text_.end() ? std::string_view() : base::trim(line->second));
  }
  std::size_t first = i;
  while (first > 0 && all_[first - 1].last_line >= all_[first].line && !is_made_up(first - 1)) {
    --first;
  }
  std::size_t last = i;
  while (last + 1 < all_.size() && all_[last + 1].line <= all_[last].last_line &&
         !is_made_up(last + 1)) {
    ++last;
  }
  const Node end = all_[last].node;
  return all_[first].node.one_line_until(is_header(end.kind()) ? end_of_colon(end) : end.end());
}

}  // namespace ddpdoctor::program
