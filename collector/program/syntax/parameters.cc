// SPDX-License-Identifier: Apache-2.0
#include "collector/program/syntax/parameters.h"

namespace ddpdoctor::program {
namespace {

/// The name in `x: int` or `*rest: str`.
Node name_in(Node node) {
  while (node && !node.is(NodeKind::kName)) {
    const Node name = node.field(Field::kName);
    node = name ? name : node.first_child();
  }
  return node;
}

bool is_star(Node node, NodeKind kind) {
  return node.is(kind) || (node.is(NodeKind::kTypedParameter) && node.first_child().is(kind));
}

}  // namespace

std::vector<Parameter> parameters_of(Node list) {
  std::vector<Parameter> out;
  bool keyword_only = false;
  for (const Node child : list.children()) {
    if (child.is(NodeKind::kPositionalSeparator)) {
      for (Parameter& before : out) {
        before.kind = Parameter::Kind::kPositionalOnly;
      }
      continue;
    }
    if (child.is(NodeKind::kKeywordSeparator)) {
      keyword_only = true;
      continue;
    }
    const Node name = name_in(child);
    if (!name) {
      continue;
    }
    Parameter parameter{.name = name.text(), .otherwise = child.field(Field::kValue)};
    if (is_star(child, NodeKind::kListSplatPattern)) {
      parameter.kind = Parameter::Kind::kStar;
      keyword_only = true;
    } else if (is_star(child, NodeKind::kDictionarySplatPattern)) {
      parameter.kind = Parameter::Kind::kDoubleStar;
    } else if (keyword_only) {
      parameter.kind = Parameter::Kind::kKeywordOnly;
    }
    out.push_back(parameter);
  }
  return out;
}

}  // namespace ddpdoctor::program
