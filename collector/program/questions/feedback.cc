// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/feedback.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "collector/program/questions/block_of.h"
#include "collector/program/questions/leaving.h"
#include "collector/program/questions/names.h"

namespace ddpdoctor::program {
namespace {

constexpr std::size_t kEnough = 64;  // names followed back

bool is_bound_in(const std::vector<Binding>& bindings, const Code& code, std::size_t loop,
                 const std::string& name) {
  return std::any_of(bindings.begin(), bindings.end(), [&](const Binding& binding) {
    return (binding.statement == loop || code.encloses(loop, binding.statement)) &&
           binding.kind != BindingKind::kMethod && may_change(binding, name);
  });
}

/// What the arguments of a statement's calls read, for calls that are the same in each iteration:
/// not `layer(x)` of `for layer in layers`.
std::vector<NameChain> argument_chains(const Code& code, std::size_t statement, std::size_t loop,
                                       const std::vector<Binding>& bindings) {
  std::vector<NameChain> out;
  for (const Node part : code.own_parts(statement)) {
    each_inside(part, [&](Node node) {
      const std::string callee =
          node.is(NodeKind::kCall) ? dotted_name(node.field(Field::kFunction)) : std::string();
      if (!callee.empty() && !is_bound_in(bindings, code, loop, callee)) {
        const auto chains = name_chains(node.field(Field::kArguments));
        out.insert(out.end(), chains.begin(), chains.end());
      }
    });
  }
  return out;
}

/// What a binding stores in its target: for `ids.append(x)`, the arguments.
std::vector<NameChain> put_in_by(const Binding& binding) {
  return name_chains(binding.kind == BindingKind::kMethod ? binding.node.field(Field::kArguments)
                                                          : binding.value);
}

/// Follows the loop's bindings back from the arguments to the statement itself.
bool feeds_itself(const Code& code, std::size_t at, std::size_t loop) {
  const auto bindings = bindings_of(code.index(), code.index().function_at(code[at].line));
  std::vector<NameChain> open = argument_chains(code, at, loop, bindings);
  std::set<std::string> known;
  while (!open.empty() && known.size() < kEnough) {
    const NameChain chain = open.back();
    open.pop_back();
    const std::string name = chain.dotted();
    if (!known.insert(name).second) {
      continue;
    }
    for (const Binding& binding : bindings) {
      if (!code.encloses(loop, binding.statement) || !may_change(binding, name)) {
        continue;
      }
      if (binding.statement == at && binding.kind != BindingKind::kMethod) {
        return true;
      }
      const auto chains = put_in_by(binding);
      open.insert(open.end(), chains.begin(), chains.end());
    }
  }
  return false;
}

/// `while not finished`, or a branch that leaves; `while True` alone has no exit.
bool can_end_by_a_test(const Code& code, std::size_t loop) {
  const Node condition = code[loop].node.field(Field::kCondition);
  return (code.kind(loop) == NodeKind::kWhile && !name_chains(condition).empty()) ||
         !ways_out_of(code, loop).empty();
}

}  // namespace

std::optional<Block> feedback_loop(const SourceText& text, int line) {
  const Code code(text);
  const std::size_t at = code.at(line);
  if (at == kNone) {
    return std::nullopt;
  }
  for (const std::size_t header : code.headers_around(at)) {
    if (code.is_loop(header) && can_end_by_a_test(code, header) && feeds_itself(code, at, header)) {
      return block_of(code, header);
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::program
