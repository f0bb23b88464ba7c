// SPDX-License-Identifier: Apache-2.0
#include "collector/program/syntax/node.h"

#include "collector/program/syntax/tree.h"

namespace ddpdoctor::program {
namespace {

bool opens(char c) {
  return c == '(' || c == '[' || c == '{';
}

bool closes(char c) {
  return c == ')' || c == ']' || c == '}';
}

}  // namespace

NodeKind Node::kind() const {
  return tree_ == nullptr ? NodeKind::kError : tree_->nodes()[id_].kind;
}

Field Node::role() const {
  return tree_ == nullptr ? Field::kNone : tree_->nodes()[id_].role;
}

std::uint32_t Node::begin() const {
  return tree_ == nullptr ? 0 : tree_->nodes()[id_].begin;
}

std::uint32_t Node::end() const {
  return tree_ == nullptr ? 0 : tree_->nodes()[id_].end;
}

std::uint32_t Node::end_id() const {
  return tree_ == nullptr ? 0 : tree_->nodes()[id_].last;
}

std::string_view Node::text() const {
  return tree_ == nullptr ? std::string_view()
                          : std::string_view(tree_->text().buffer).substr(begin(), end() - begin());
}

int Node::line() const {
  return tree_ == nullptr ? 0 : tree_->text().line_of_row(tree_->nodes()[id_].row);
}

int Node::last_line() const {
  return tree_ == nullptr ? 0 : tree_->text().line_of_row(tree_->nodes()[id_].last_row);
}

Node Node::parent() const {
  return tree_ == nullptr || id_ == 0 ? Node() : Node(tree_, tree_->nodes()[id_].parent);
}

std::vector<Node> Node::all_children() const {
  std::vector<Node> out;
  if (tree_ != nullptr) {
    const std::uint32_t past = tree_->nodes()[id_].last;
    for (std::uint32_t i = id_ + 1; i < past; i = tree_->nodes()[i].last) {
      out.emplace_back(tree_, i);
    }
  }
  return out;
}

std::vector<Node> Node::children() const {
  std::vector<Node> out;
  for (Node child = first_child(); child; child = child.next_sibling()) {
    out.push_back(child);
  }
  return out;
}

namespace {

/// The first child in [from, past) that has a kind of its own.
std::uint32_t first_named(const std::vector<FlatNode>& nodes, std::uint32_t from,
                          std::uint32_t past) {
  while (from < past &&
         (nodes[from].kind == NodeKind::kToken || nodes[from].kind == NodeKind::kComment)) {
    from = nodes[from].last;
  }
  return from;
}

}  // namespace

Node Node::first_child() const {
  if (tree_ == nullptr) {
    return {};
  }
  const std::uint32_t past = tree_->nodes()[id_].last;
  const std::uint32_t found = first_named(tree_->nodes(), id_ + 1, past);
  return found < past ? Node(tree_, found) : Node();
}

Node Node::next_sibling() const {
  if (tree_ == nullptr || id_ == 0) {
    return {};
  }
  const FlatNode& me = tree_->nodes()[id_];
  const std::uint32_t past = tree_->nodes()[me.parent].last;
  const std::uint32_t found = first_named(tree_->nodes(), me.last, past);
  return found < past ? Node(tree_, found) : Node();
}

Node Node::field(Field field) const {
  if (tree_ != nullptr) {
    const std::uint32_t past = tree_->nodes()[id_].last;
    for (std::uint32_t i = id_ + 1; i < past; i = tree_->nodes()[i].last) {
      if (tree_->nodes()[i].role == field && tree_->nodes()[i].kind != NodeKind::kComment) {
        return {tree_, i};
      }
    }
  }
  return {};
}

std::vector<Node> Node::fields(Field field) const {
  std::vector<Node> out;
  for (const Node child : all_children()) {
    if (child.role() == field && child.kind() != NodeKind::kComment) {
      out.push_back(child);
    }
  }
  return out;
}

std::string Node::one_line_until(std::uint32_t end) const {
  if (tree_ == nullptr || end <= begin()) {
    return {};
  }
  const std::string_view buffer = tree_->text().buffer;
  const std::string_view written_as = buffer.substr(begin(), end - begin());
  if (written_as.find_first_of("\n#\t") == std::string_view::npos &&
      written_as.find("  ") == std::string_view::npos) {
    return std::string(written_as);
  }
  std::string out;
  std::uint32_t written = begin();
  const auto& nodes = tree_->nodes();
  for (std::uint32_t i = id_; i < nodes.size() && nodes[i].begin < end; ++i) {
    const FlatNode& node = nodes[i];
    const bool string = node.kind == NodeKind::kString;
    if (node.kind == NodeKind::kComment || (node.last != i + 1 && !string)) {
      continue;  // not a leaf
    }
    std::string_view leaf = buffer.substr(node.begin, node.end - node.begin);
    leaf = leaf.substr(0, leaf.find('\n'));  // the first line of a multi-line string
    if (!out.empty() && node.begin > written && !leaf.empty()) {
      const std::string_view between = buffer.substr(written, node.begin - written);
      const bool broken = between.find('\n') != std::string_view::npos;
      if (!broken || !(opens(out.back()) || closes(leaf.front()))) {
        out += ' ';
      }
    }
    out += leaf;
    written = node.end;
    if (string) {
      i = node.last - 1;
    }
  }
  return out;
}

int Node::indent() const {
  constexpr int kTabWidth = 8;  // as in CPython's tokenizer
  if (tree_ == nullptr) {
    return 0;
  }
  const std::string_view before = std::string_view(tree_->text().buffer).substr(0, begin());
  int indent = 0;
  for (const char c : before.substr(before.rfind('\n') + 1)) {  // npos + 1 = 0
    if (c == '\t') {
      indent = (indent / kTabWidth + 1) * kTabWidth;
    } else if (c == ' ') {
      ++indent;
    } else {
      break;
    }
  }
  return indent;
}

std::vector<Node> calls_within(Node node) {
  std::vector<Node> out;
  const auto add = [&out](Node inside, const auto& self) -> void {
    for (const Node child : inside.children()) {
      if (child.is(NodeKind::kFunction) || child.is(NodeKind::kClass) ||
          child.is(NodeKind::kLambda)) {
        continue;
      }
      if (child.is(NodeKind::kCall)) {
        out.push_back(child);
      }
      self(child, self);
    }
  };
  add(node, add);
  return out;
}

Node without_parentheses(Node node) {
  while (node.is(NodeKind::kParenthesized) && node.first_child()) {
    node = node.first_child();
  }
  return node;
}

}  // namespace ddpdoctor::program
