// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/expressions.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "collector/program/questions/fragment.h"
#include "collector/program/questions/names.h"

namespace ddpdoctor::program {
namespace {

using std::string_view;

bool is_comprehension(NodeKind kind) {
  return kind == NodeKind::kListComprehension || kind == NodeKind::kSetComprehension ||
         kind == NodeKind::kDictionaryComprehension || kind == NodeKind::kGenerator;
}

/// The last name of a callee; nothing for `hooks[0](x)`.
Node name_of(Node call) {
  const Node callee = call.field(Field::kFunction);
  return callee.is(NodeKind::kAttribute) ? callee.field(Field::kAttribute)
         : callee.is(NodeKind::kName)    ? callee
                                         : Node();
}

/// Where the callee begins: at the dot if it follows the result of another call.
std::size_t begin_of_callee(const Fragment& text, Node callee) {
  Node first = callee;
  while (first.is(NodeKind::kAttribute)) {
    const Node object = first.field(Field::kObject);
    if (!object.is(NodeKind::kAttribute) && !object.is(NodeKind::kName)) {
      return text.end(object);
    }
    first = object;
  }
  return text.begin(first);
}

std::vector<string_view> arguments_of(const Fragment& text, Node list) {
  std::vector<string_view> out;
  if (list.is(NodeKind::kGenerator)) {
    out.push_back(text.view(text.begin(list) + 1, text.end(list) - 1));
    return out;
  }
  for (Node child = list.first_child(); child; child = child.next_sibling()) {
    out.push_back(text.view(child));
  }
  return out;
}

/// Methods whose prefix says that they change their object.
bool is_changing_method(string_view method) {
  constexpr std::array<string_view, 8> kChanges = {"pop",    "remove", "clear", "discard",
                                                   "append", "set",    "put",   "extend"};
  return method == "get" || method == "update" ||
         std::any_of(kChanges.begin(), kChanges.end(),
                     [method](string_view change) { return method.starts_with(change); });
}

bool is_named(Node target, string_view name) {
  return (target.is(NodeKind::kName) && target.text() == name) ||
         (target.is(NodeKind::kAttribute) && target.field(Field::kAttribute).text() == name);
}

/// The name is one of those that an assignment's left side binds.
bool binds(Node target, string_view name) {
  if (target.is(NodeKind::kPatternList) || target.is(NodeKind::kTuplePattern) ||
      target.is(NodeKind::kListPattern)) {
    const auto all = target.children();
    return std::any_of(all.begin(), all.end(), [name](Node one) { return binds(one, name); });
  }
  return is_named(target, name);
}

bool is_change(Node node, string_view name) {
  switch (node.kind()) {
    case NodeKind::kAssignment:
      return node.field(Field::kRight) && binds(node.field(Field::kLeft), name);
    case NodeKind::kAugmentedAssignment:
      return binds(node.field(Field::kLeft), name);
    case NodeKind::kNamed:
      return is_named(node.field(Field::kName), name);
    case NodeKind::kSubscript:
      return is_named(node.field(Field::kValue), name);
    case NodeKind::kCall: {
      const Node callee = node.field(Field::kFunction);
      return callee.is(NodeKind::kAttribute) && is_named(callee.field(Field::kObject), name) &&
             is_changing_method(callee.field(Field::kAttribute).text());
    }
    default:
      return false;
  }
}

string_view without_quotes(string_view text) {
  constexpr string_view kQuotes = "\"'";
  const std::size_t first = text.find_first_of(kQuotes);
  const std::size_t last = text.find_last_of(kQuotes);
  return first < last && last != string_view::npos ? text.substr(first + 1, last - first - 1)
                                                   : string_view();
}

/// The string with which an expression reads the environment; nothing for other expressions.
Node variable_asked(Node node) {
  if (node.is(NodeKind::kSubscript) && is_named(node.field(Field::kValue), "environ")) {
    return node.field(Field::kSubscript);
  }
  if (node.is(NodeKind::kComparison)) {
    const auto sides = node.children();
    const string_view how = node.field(Field::kOperators).text();
    return sides.size() == 2 && (how == "in" || how == "not in") && is_named(sides[1], "environ")
               ? sides[0]
               : Node();
  }
  const Node callee = node.is(NodeKind::kCall) ? node.field(Field::kFunction) : Node();
  const bool asks = is_named(callee, "getenv") ||
                    (is_named(callee, "get") && is_named(callee.field(Field::kObject), "environ"));
  return asks ? node.field(Field::kArguments).first_child() : Node();
}

std::vector<string_view> words_below(const Fragment& fragment, Node root) {
  std::vector<string_view> out;
  each_inside(root, [&](Node node) {
    const bool word = node.is(NodeKind::kName) || node.is(NodeKind::kInteger) ||
                      node.is(NodeKind::kFloat) || node.is(NodeKind::kString);
    if (word && !fragment.view(node).empty()) {
      out.push_back(fragment.view(node));
    }
  });
  return out;
}

}  // namespace

string_view keyword_argument(const Call& call, string_view keyword) {
  for (const string_view argument : call.arguments) {
    const std::size_t sign = argument.find('=');
    if (sign == string_view::npos || argument.substr(sign).starts_with("==") ||
        base::trim(argument.substr(0, sign)) != keyword) {
      continue;
    }
    return base::trim(argument.substr(sign + 1));
  }
  return {};
}

string_view last_name(string_view dotted) {
  return dotted.substr(dotted.rfind('.') + 1);
}

std::vector<Call> calls_in(string_view text) {
  const Fragment fragment(text);
  std::vector<Node> calls;
  each_inside(fragment.root(), [&calls](Node node) {
    const Node name = node.is(NodeKind::kCall) ? name_of(node) : Node();
    if (name && node.end() > name.end()) {
      calls.push_back(node);
    }
  });
  std::stable_sort(calls.begin(), calls.end(),
                   [](Node a, Node b) { return name_of(a).begin() < name_of(b).begin(); });
  std::vector<Call> out;
  for (const Node call : calls) {
    const std::size_t begin = begin_of_callee(fragment, call.field(Field::kFunction));
    out.push_back({.callee = fragment.view(begin, fragment.end(name_of(call))),
                   .begin = begin,
                   .end = fragment.end(call),
                   .arguments = arguments_of(fragment, call.field(Field::kArguments))});
  }
  return out;
}

std::vector<string_view> words_in(string_view text) {
  const Fragment fragment(text);
  return words_below(fragment, fragment.root());
}

std::vector<string_view> words_yielded(string_view text) {
  if (text.find("yield") == string_view::npos) {
    return {};
  }
  const Fragment fragment(text);
  std::vector<string_view> out;
  each_inside(fragment.root(), [&](Node node) {
    if (node.is(NodeKind::kYield)) {
      for (const string_view word : words_below(fragment, node)) {
        out.push_back(word);
      }
    }
  });
  return out;
}

std::vector<string_view> values_read(string_view text) {
  const Fragment fragment(text);
  std::vector<string_view> out;
  for (const NameChain& chain : name_chains(fragment.root())) {
    Node value = chain.node;
    if (chain.called) {
      value = value.is(NodeKind::kAttribute) ? value.field(Field::kObject) : Node();
      if (chain.words.size() < 2) {
        continue;
      }
    }
    value = value.is(NodeKind::kAttribute) ? value.field(Field::kAttribute) : value;
    out.push_back(fragment.view(value));
  }
  std::erase(out, "self");
  std::erase(out, "");
  return out;
}

bool changes(string_view statement, string_view name) {
  if (statement.find(name) == string_view::npos) {
    return false;
  }
  const Fragment fragment(statement);
  bool found = false;
  each_inside(fragment.root(), [&](Node node) { found = found || is_change(node, name); });
  return found;
}

string_view comprehension_calling(string_view text, string_view callee) {
  if (text.find("for") == string_view::npos) {
    return {};
  }
  const Fragment fragment(text);
  Node first;
  each_inside(fragment.root(), [&first](Node node) {
    const bool before = !first || node.begin() < first.begin();
    first = node.is(NodeKind::kForIn) && before ? node : first;
  });
  const Node whole = first.parent();
  if (!is_comprehension(whole.kind())) {
    return {};
  }
  bool inside = false;
  bool outside = false;
  each_inside(fragment.root(), [&](Node node) {
    if (!callee.empty() && node.is(NodeKind::kCall) && name_of(node).text() == callee) {
      (whole.holds(node) ? inside : outside) = true;
    }
  });
  if (outside && !inside) {
    return {};
  }
  Node last = first;
  for (Node clause = first; clause; clause = clause.next_sibling()) {
    last = clause;
  }
  return fragment.view(fragment.begin(first), fragment.end(last));
}

std::vector<string_view> variables_asked(string_view text) {
  const Fragment fragment(text);
  std::vector<string_view> out;
  each_inside(fragment.root(), [&](Node node) {
    const Node asked = variable_asked(node);
    if (asked.is(NodeKind::kString)) {
      out.push_back(without_quotes(fragment.view(asked)));
    }
  });
  return out;
}

}  // namespace ddpdoctor::program
