// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/data_ends.h"

#include <algorithm>
#include <array>
#include <string>

#include "collector/program/questions/block_of.h"
#include "collector/program/questions/catching.h"
#include "collector/program/questions/leaving.h"
#include "collector/program/questions/names.h"

namespace ddpdoctor::program {
namespace {

/// The value comes from a call: the name of a variable alone says nothing.
bool calls_something(Node value) {
  bool calls = false;
  each_inside(value, [&calls](Node node) { calls = calls || node.is(NodeKind::kCall); });
  return calls;
}

/// The statement belongs to this loop and not to an inner one.
bool belongs_to(const Code& code, std::size_t statement, std::size_t loop) {
  return code.encloses(loop, statement) && code.loop_around(statement) == loop;
}

std::optional<std::size_t> taking_statement(const Code& code, std::size_t suite, std::size_t loop) {
  for (std::size_t i = suite + 1; i < code.end_of_suite(suite); ++i) {
    const auto parts = code.own_parts(i);
    if ((i == loop || belongs_to(code, i, loop)) &&
        std::any_of(parts.begin(), parts.end(), calls_something)) {
      return i;
    }
  }
  return std::nullopt;
}

/// The clause sets the flag of the loop's condition: `while not done: … except …: done = True`.
bool sets_condition(const Code& code, std::size_t clause, std::size_t loop) {
  if (code.kind(loop) != NodeKind::kWhile) {
    return false;
  }
  const auto names = name_chains(code[loop].node.field(Field::kCondition));
  return !names.empty() && std::all_of(names.begin(), names.end(), [&](const NameChain& name) {
    const auto all = values_of(code, name.dotted(), code.function_around(loop));
    return std::any_of(all.begin(), all.end(),
                       [&](const Binding& one) { return code.encloses(clause, one.statement); });
  });
}

/// The except clause for the end of data, of a try in the loop or directly around it.
std::optional<DataEnd> caught_end_of(const Code& code, std::size_t a_try, std::size_t loop,
                                     bool around) {
  const auto taken = taking_statement(code, around ? loop : a_try, loop);
  if (!taken) {
    return std::nullopt;
  }
  for (const std::size_t clause : code.clauses(a_try)) {
    const auto caught = code.kind(clause) == NodeKind::kExcept ? caught_by(code, clause)
                                                               : std::vector<std::string_view>();
    if (std::none_of(caught.begin(), caught.end(), is_end_of_data)) {
      continue;
    }
    const Leaving leaving = leaving_of(code, clause);
    const bool flag = sets_condition(code, clause, loop);
    if (around || flag || leaving == Leaving::kBreak || leaving == Leaving::kFunction) {
      return DataEnd{.taken = code[*taken].line, .noticed = code[flag ? loop : clause].line};
    }
  }
  return std::nullopt;
}

std::optional<DataEnd> caught_end(const Code& code, std::size_t loop) {
  for (std::size_t i = loop + 1; i < code.end_of_suite(loop); ++i) {
    if (code.kind(i) == NodeKind::kTry && belongs_to(code, i, loop)) {
      if (auto found = caught_end_of(code, i, loop, false)) {
        return found;
      }
    }
  }
  const std::size_t parent = code.parent(loop);
  return parent != kNone && code.kind(parent) == NodeKind::kTry
             ? caught_end_of(code, parent, loop, true)
             : std::nullopt;
}

/// `x is END`, `not x`, `x != b""`, `len(x) == 0`: tests whether there is any data.
bool asks_for_presence(Node condition) {
  constexpr std::array<std::string_view, 6> kOthers = {"<", ">", "<=", ">=", "+", "%"};
  bool asks = true;
  each_inside(condition, [&asks, &kOthers](Node node) {
    const bool given =  // `read(4096)` reads data; its argument is only a size
        node.parent().is(NodeKind::kArguments) || node.parent().is(NodeKind::kKeywordArgument);
    const bool number =
        (node.is(NodeKind::kInteger) || node.is(NodeKind::kFloat)) && !given && node.text() != "0";
    bool other = node.is(NodeKind::kBoolean);
    for (const Node child : node.all_children()) {
      other = other || (child.is(NodeKind::kToken) &&
                        std::find(kOthers.begin(), kOthers.end(), child.text()) != kOthers.end());
    }
    asks = asks && !number && !other;
  });
  return asks;
}

/// `not x`, `x is END`, `x == b""`; but not `if stop`, which waits for an event.
bool says_absent(Node condition) {
  condition = without_parentheses(condition);
  bool absent = condition.is(NodeKind::kNot);
  each_inside(condition, [&absent](Node node) {
    const std::string_view how =
        node.is(NodeKind::kComparison) ? node.field(Field::kOperators).text() : std::string_view();
    absent = absent || how == "==" || how == "is";
  });
  return absent;
}

/// The loop also reads the name outside the test: it is data and not only a completion flag.
bool is_used(const Code& code, std::string_view name, std::size_t loop, std::size_t bound,
             std::size_t test) {
  for (std::size_t i = loop + 1; i < code.end_of_suite(loop); ++i) {
    if (i == bound || i == test) {
      continue;
    }
    for (const Node part : code.own_parts(i)) {
      const auto chains = name_chains(part);
      if (std::any_of(chains.begin(), chains.end(),
                      [name](const NameChain& one) { return one.words.front() == name; })) {
        return true;
      }
    }
  }
  return false;
}

/// `while (x := next(it, None)) is not None`.
std::optional<DataEnd> end_in_header(const Code& code, std::size_t loop) {
  const Node condition = code[loop].node.field(Field::kCondition);
  if (code.kind(loop) != NodeKind::kWhile || !asks_for_presence(condition) ||
      says_absent(condition) || !calls_something(condition)) {
    return std::nullopt;
  }
  bool binds_data = false;
  each_inside(condition, [&](Node node) {
    binds_data = binds_data || (node.is(NodeKind::kNamed) &&
                                is_used(code, node.field(Field::kName).text(), loop, loop, loop));
  });
  return binds_data ? std::optional(DataEnd{.taken = code[loop].line, .noticed = code[loop].line})
                    : std::nullopt;
}

/// `x = q.get()` in the loop, and `if x is END: break`.
std::optional<DataEnd> end_by_value(const Code& code, std::size_t loop) {
  const std::size_t function = code.function_around(loop);
  for (const std::size_t exit : ways_out_of(code, loop)) {
    const Node condition = code[exit].node.field(Field::kCondition);
    if (!condition || !asks_for_presence(condition) || !says_absent(condition)) {
      continue;
    }
    for (const NameChain& name : name_chains(condition)) {
      if (name.words.size() != 1) {
        continue;
      }
      const auto all = values_of(code, name.words.front(), function);
      const auto taken = std::find_if(all.begin(), all.end(), [&](const Binding& one) {
        return belongs_to(code, one.statement, loop) && calls_something(one.value);
      });
      if (taken != all.end() && is_used(code, name.words.front(), loop, taken->statement, exit)) {
        return DataEnd{.taken = code[taken->statement].line, .noticed = code[exit].line};
      }
    }
  }
  return std::nullopt;
}

/// The function of `range(…)` or `enumerate(…)`; empty for any other iterable.
std::string_view iterates_by(const Code& code, std::size_t loop) {
  const Node items = code[loop].node.field(Field::kRight);
  const Node callee = items.is(NodeKind::kCall) ? items.field(Field::kFunction) : Node();
  return callee.is(NodeKind::kName) ? callee.text() : std::string_view();
}

/// "i" of `for i, x in enumerate(…)` and of `for i in range(…)`: equal on every rank.
bool is_counter(const Code& code, std::size_t loop, std::string_view name) {
  if (code.kind(loop) != NodeKind::kFor) {
    return false;
  }
  const Node target = code[loop].node.field(Field::kLeft);
  const Node first = target.is(NodeKind::kName) ? target : target.first_child();
  const std::string_view by = iterates_by(code, loop);
  return first.text() == name && (by == "range" || by == "enumerate");
}

/// "step // n", "schedule(step)" in `for step in range(…)`: also a counter. The result of a call or
/// index on anything else may be specific to the iteration.
bool is_counted(const Code& code, std::size_t loop, const Binding& bound) {
  if (bound.statement == loop || iterates_by(code, loop) != "range") {
    return false;
  }
  bool asks = false;
  each_inside(bound.value, [&asks](Node node) {
    asks = asks || node.is(NodeKind::kCall) || node.is(NodeKind::kSubscript) ||
           node.is(NodeKind::kList) || node.is(NodeKind::kParenthesized) ||
           node.is(NodeKind::kTuple);
  });
  bool of_counter = false;
  for (const NameChain& name : name_chains(bound.value)) {
    const bool function = name.words.size() == 1 && name.called;
    const bool counter = is_counter(code, loop, name.words.front());
    of_counter = of_counter || counter;
    if (asks && !function && !counter) {
      return false;
    }
  }
  return !asks || of_counter;
}

/// The condition reads names that the loop rebinds in each iteration.
bool reads_the_iteration(const Code& code, std::size_t loop, Node condition) {
  const std::size_t function = code.function_around(loop);
  const auto names = name_chains(condition);
  return std::any_of(names.begin(), names.end(), [&](const NameChain& name) {
    const std::string_view first = name.words.front();
    if (is_counter(code, loop, first)) {
      return false;
    }
    const auto all = values_of(code, first, function);
    return std::any_of(all.begin(), all.end(), [&](const Binding& one) {
      const bool inside = one.statement == loop || belongs_to(code, one.statement, loop);
      return inside && !is_counted(code, loop, one);
    });
  });
}

}  // namespace

std::optional<DataEnd> data_end_of(const SourceText& text, int loop) {
  const Code code(text);
  const std::size_t at = code.header_at(loop);
  if (at == kNone || !code.is_loop(at)) {
    return std::nullopt;
  }
  auto found = end_in_header(code, at);
  found = found ? found : caught_end(code, at);
  return found ? found : end_by_value(code, at);
}

std::vector<Block> skips_before(const SourceText& text, int line) {
  const Code code(text);
  const std::size_t at = code.at(line);
  const std::size_t loop = at == kNone ? kNone : code.loop_around(at);
  std::vector<Block> out;
  if (loop == kNone) {
    return out;
  }
  for (std::size_t i = at; i-- > loop + 1;) {
    const bool tests = code.kind(i) == NodeKind::kIf || code.kind(i) == NodeKind::kElif;
    if (tests && !code.encloses(i, at) && belongs_to(code, i, loop) &&
        leaving_of(code, i) == Leaving::kContinue &&
        reads_the_iteration(code, loop, code[i].node.field(Field::kCondition))) {
      out.push_back(block_of(code, i));
    }
  }
  return out;
}

}  // namespace ddpdoctor::program
