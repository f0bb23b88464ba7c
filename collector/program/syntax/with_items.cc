// SPDX-License-Identifier: Apache-2.0
#include "collector/program/syntax/with_items.h"

namespace ddpdoctor::program {
namespace {

void add(Node entered, std::vector<Node>& out) {
  entered = without_parentheses(entered);
  if (entered.is(NodeKind::kAsPattern)) {
    entered = without_parentheses(entered.first_child());
  }
  if (entered.is(NodeKind::kTuple)) {  // the grammar's reading of `with (a, b):`
    for (const Node one : entered.children()) {
      add(one, out);
    }
  } else if (entered) {
    out.push_back(entered);
  }
}

}  // namespace

std::vector<Node> entered_by(Node with) {
  std::vector<Node> out;
  for (const Node item : with.first_child().children()) {
    add(item.is(NodeKind::kWithItem) ? item.field(Field::kValue) : item, out);
  }
  return out;
}

bool is_async(Node with) {
  const auto parts = with.all_children();
  return !parts.empty() && parts.front().is(NodeKind::kToken) && parts.front().text() == "async";
}

}  // namespace ddpdoctor::program
