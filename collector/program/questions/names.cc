// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/names.h"

#include <algorithm>
#include <map>

namespace ddpdoctor::program {
namespace {

bool gives_value(const Binding& binding) {
  return !binding.item && binding.value &&
         (binding.kind == BindingKind::kAssign || binding.kind == BindingKind::kAugmented ||
          binding.kind == BindingKind::kNamed || binding.kind == BindingKind::kFor);
}

/// All value bindings of a file by target, collected once.
struct Values {
  std::map<std::string, std::vector<Binding>, std::less<>> by_target;

  explicit Values(const SourceIndex& index) {
    for (std::size_t i = 0; i < index.statements().size(); ++i) {
      for (Binding& one : bindings_at(index, i)) {
        if (gives_value(one)) {
          auto& all = by_target[one.target];
          all.push_back(std::move(one));
        }
      }
    }
  }
};

void add_chain(Node node, bool called, std::vector<NameChain>& out);

void add_chains(Node node, std::vector<NameChain>& out) {
  switch (node.kind()) {
    case NodeKind::kString:
    case NodeKind::kBlock:
      return;
    case NodeKind::kName:
    case NodeKind::kAttribute:
      add_chain(node, false, out);
      return;
    case NodeKind::kCall: {
      const Node callee = node.field(Field::kFunction);
      if (callee.is(NodeKind::kName) || callee.is(NodeKind::kAttribute)) {
        add_chain(callee, true, out);
      } else {
        add_chains(callee, out);
      }
      add_chains(node.field(Field::kArguments), out);
      return;
    }
    case NodeKind::kKeywordArgument:
      add_chains(node.field(Field::kValue), out);
      return;
    default: {
      const bool defines = node.is(NodeKind::kFunction) || node.is(NodeKind::kClass);
      for (Node child = node.first_child(); child; child = child.next_sibling()) {
        if (!defines || child.role() != Field::kName) {
          add_chains(child, out);
        }
      }
    }
  }
}

void add_chain(Node node, bool called, std::vector<NameChain>& out) {
  NameChain chain{.words = {}, .node = node, .called = called};
  while (node.is(NodeKind::kAttribute)) {
    chain.words.push_back(node.field(Field::kAttribute).text());
    node = node.field(Field::kObject);
  }
  if (node.is(NodeKind::kName)) {
    chain.words.push_back(node.text());
  } else {
    chain.of_result = true;
    add_chains(node, out);
  }
  std::reverse(chain.words.begin(), chain.words.end());
  out.push_back(std::move(chain));
}

}  // namespace

std::string NameChain::dotted() const {
  std::string out;
  for (const std::string_view word : words) {
    out += (out.empty() ? "" : ".") + std::string(word);
  }
  return out;
}

std::vector<NameChain> name_chains(Node expression) {
  std::vector<NameChain> out;
  add_chains(expression, out);
  return out;
}

std::vector<Binding> values_of(const Code& code, std::string_view name, std::size_t function) {
  const Values& values = code.text().once<Values>([&code] { return Values(code.index()); });
  std::vector<Binding> out;
  const auto found = values.by_target.find(name);
  const bool attribute = name.find('.') != std::string_view::npos;
  for (const Binding& one :
       found == values.by_target.end() ? std::vector<Binding>() : found->second) {
    if (attribute || code.function_around(one.statement) == function) {
      out.push_back(one);
    }
  }
  return out;
}

std::vector<Node> returns_of(const Code& code, std::string_view name) {
  std::vector<Node> out;
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (code.kind(i) != NodeKind::kFunction || code[i].node.field(Field::kName).text() != name) {
      continue;
    }
    for (std::size_t j = i + 1; j < code[i].end; ++j) {
      if (code.kind(j) == NodeKind::kReturn && code.function_around(j) == i) {
        out.push_back(code[j].node.first_child());
      }
    }
  }
  return out;
}

}  // namespace ddpdoctor::program
