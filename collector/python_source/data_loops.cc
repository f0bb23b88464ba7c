// SPDX-License-Identifier: Apache-2.0
// One round of a loop: where it takes its data, what ends it for want of more, what skips the rest
// of it.
#include <algorithm>
#include <array>
#include <string>

#include "collector/python_source/assignments.h"
#include "collector/python_source/clauses.h"
#include "collector/python_source/exits.h"
#include "collector/python_source/rank_words.h"

namespace ddpdoctor::python_source {
namespace {

bool starts_like(std::string_view word, std::string_view part) {
  return word.starts_with(part) || word.starts_with("_" + std::string(part));
}

/// `next(it)`, `q.get()`, `reader.read_batch()`: a call that takes the next piece of data.
bool takes_data(Tokens value) {
  constexpr std::array<std::string_view, 8> kVerbs = {"next", "anext", "__next__", "get",
                                                      "read", "recv",  "pop",      "fetch"};
  const auto chains = name_chains(value);
  return std::any_of(chains.begin(), chains.end(), [&](const NameChain& chain) {
    const bool called = chain.end < value.size() && value[chain.end].is("(");
    return called && std::any_of(kVerbs.begin(), kVerbs.end(), [&](std::string_view verb) {
             return starts_like(chain.words.back(), verb);
           });
  });
}

/// Statements of a suite that belong to the same loop and function, without those of inner loops.
bool belongs_to(const Structure& structure, std::size_t statement, std::size_t loop) {
  return structure.encloses(loop, statement) && loop_of(structure, statement) == loop;
}

std::optional<std::size_t> taking_statement(const Structure& structure, std::size_t suite,
                                            std::size_t loop) {
  for (std::size_t i = suite + 1; i < structure.end_of_suite(suite); ++i) {
    if ((i == loop || belongs_to(structure, i, loop)) &&
        takes_data(structure.statements[i].tokens())) {
      return i;
    }
  }
  return std::nullopt;
}

/// The clause sets a flag that the loop's condition is: `while not done: … except …: done = True`.
bool sets_condition(const Structure& structure, std::size_t clause, std::size_t loop) {
  if (structure.statements[loop].kind != BlockKind::kWhile) {
    return false;
  }
  std::size_t set = 0;
  for (const NameChain& chain : name_chains(structure.statements[loop].header())) {
    std::string name;
    for (const std::string_view word : chain.words) {
      name += (name.empty() ? "" : ".") + std::string(word);
    }
    if (is_keyword(name)) {
      continue;
    }
    const auto all = assignments_of(structure, name, structure.function_around(loop));
    if (std::none_of(all.begin(), all.end(), [&](const Assignment& one) {
          return structure.encloses(clause, one.statement) || one.statement == clause;
        })) {
      return false;
    }
    ++set;
  }
  return set > 0;
}

/// A clause for the end of data, of a try in the loop or right around it.
std::optional<DataEnd> caught_end(const Structure& structure, std::size_t loop) {
  const auto of_try = [&](std::size_t a_try, bool around) -> std::optional<DataEnd> {
    const auto taken = taking_statement(structure, around ? loop : a_try, loop);
    if (!taken) {
      return std::nullopt;
    }
    for (const std::size_t clause : except_clauses(structure, a_try)) {
      const auto caught = caught_by(structure, clause);
      if (std::none_of(caught.begin(), caught.end(), is_end_of_data)) {
        continue;
      }
      const Leaving leaving = leaving_of(structure, clause);
      const bool flag = sets_condition(structure, clause, loop);
      if (around || flag || leaving == Leaving::kBreak || leaving == Leaving::kFunction) {
        return DataEnd{.taken = structure.statements[*taken].line(),
                       .noticed = structure.statements[flag ? loop : clause].line()};
      }
    }
    return std::nullopt;
  };
  for (std::size_t i = loop + 1; i < structure.end_of_suite(loop); ++i) {
    if (structure.statements[i].kind == BlockKind::kTry && belongs_to(structure, i, loop)) {
      if (auto found = of_try(i, false)) {
        return found;
      }
    }
  }
  const std::size_t parent = structure.statements[loop].parent;
  return parent != kNowhere && structure.statements[parent].kind == BlockKind::kTry
             ? of_try(parent, true)
             : std::nullopt;
}

/// `x is END`, `not x`, `x != b""`, `len(x) == 0`: asks whether there is anything at all.
bool asks_for_presence(Tokens condition) {
  constexpr std::array<std::string_view, 8> kOthers = {"and", "or", "<", ">", "<=", ">=", "+", "%"};
  return std::none_of(condition.begin(), condition.end(), [&](const Token& token) {
    const bool number = token.kind == TokenKind::kNumber && !token.is("0");
    return number || std::find(kOthers.begin(), kOthers.end(), token.text) != kOthers.end();
  });
}

/// `not x`, `x is END`, `x == b""`; not `if stop`, which waits for something to come.
bool says_absent(Tokens condition) {
  for (std::size_t i = 0; i < condition.size(); ++i) {
    const bool negated = i + 1 < condition.size() && condition[i + 1].is("not");
    if (condition[i].is("==") || (condition[i].is("is") && !negated) ||
        (i == 0 && condition[i].is("not"))) {
      return true;
    }
  }
  return false;
}

/// `(x := source()) is not None`: whatever it calls, it goes on for as long as something comes.
bool goes_on_while_something_comes(Tokens header) {
  const auto is = find_token(header, "is", 0);
  const bool tested =
      is + 2 < header.size() && header[is + 1].is("not") && header[is + 2].is("None");
  return tested && header[is - (is > 0 ? 1 : 0)].is(")") &&
         std::any_of(header.begin(), header.end(),
                     [](const Token& token) { return token.depth == 1 && token.is("("); });
}

/// `while (x := next(it, None)) is not None`.
std::optional<DataEnd> end_in_header(const Structure& structure, std::size_t loop) {
  const Statement& statement = structure.statements[loop];
  const Tokens header = statement.header();
  const bool binds =
      std::any_of(header.begin(), header.end(), [](const Token& token) { return token.is(":="); });
  if (statement.kind != BlockKind::kWhile || !binds || !asks_for_presence(header) ||
      !(takes_data(header) || goes_on_while_something_comes(header))) {
    return std::nullopt;
  }
  return DataEnd{.taken = statement.line(), .noticed = statement.line()};
}

/// `x = q.get()` in the loop, and `if x is END: break`.
std::optional<DataEnd> end_by_value(const Structure& structure, std::size_t loop) {
  const std::size_t function = structure.function_around(loop);
  for (const std::size_t exit : ways_out_of(structure, loop)) {
    const Tokens condition = structure.statements[exit].header();
    const auto names = name_chains(condition);
    if (!asks_for_presence(condition) || !says_absent(condition)) {
      continue;
    }
    for (const NameChain& name : names) {
      if (name.words.size() != 1) {
        continue;
      }
      const auto all = assignments_of(structure, name.words.front(), function);
      const auto taken = std::find_if(all.begin(), all.end(), [&](const Assignment& one) {
        return belongs_to(structure, one.statement, loop) && takes_data(one.value);
      });
      if (taken != all.end()) {
        return DataEnd{.taken = structure.statements[taken->statement].line(),
                       .noticed = structure.statements[exit].line()};
      }
    }
  }
  return std::nullopt;
}

/// "i" of `for i, x in enumerate(…)` and of `for i in range(…)`: alike on every rank.
bool is_counter(const Structure& structure, std::size_t loop, std::string_view name) {
  const Statement& statement = structure.statements[loop];
  const Tokens header = statement.header();
  if (statement.kind != BlockKind::kFor || header.empty()) {
    return false;
  }
  const Tokens target = statement.tokens().subspan(statement.keyword + 1);
  const bool first = !target.empty() && (target.front().text == name);
  return first && (header.front().is("range") || header.front().is("enumerate"));
}

/// "step // n", "schedule(step)" in `for step in range(…)`: a counter as well, in other words. What
/// a call or an index gets from anything else may be the round's own.
bool is_counted(const Structure& structure, std::size_t loop, const Assignment& bound) {
  if (bound.statement == loop || !structure.statements[loop].header().front().is("range")) {
    return false;
  }
  const Tokens value = bound.value;
  const bool asks = std::any_of(value.begin(), value.end(),
                                [](const Token& t) { return t.is("(") || t.is("["); });
  bool of_counter = false;
  for (const NameChain& name : name_chains(value)) {
    const bool function =
        name.words.size() == 1 && name.end < value.size() && value[name.end].is("(");
    const bool counter = is_counter(structure, loop, name.words.front());
    of_counter = of_counter || counter;
    if (asks && !function && !counter) {
      return false;
    }
  }
  return !asks || of_counter;
}

/// Names of a condition that the loop binds anew in each round.
bool reads_the_round(const Structure& structure, std::size_t loop, Tokens condition) {
  const std::size_t function = structure.function_around(loop);
  const auto names = name_chains(condition);
  return std::any_of(names.begin(), names.end(), [&](const NameChain& name) {
    const std::string_view first = name.words.front();
    if (is_counter(structure, loop, first)) {
      return false;
    }
    const auto all = assignments_of(structure, first, function);
    return std::any_of(all.begin(), all.end(), [&](const Assignment& one) {
      const bool in_round = one.statement == loop || belongs_to(structure, one.statement, loop);
      return in_round && !is_counted(structure, loop, one);
    });
  });
}

}  // namespace

std::optional<DataEnd> data_end_of(const Lines& lines, int loop) {
  const Structure& structure = structure_of(lines);
  const std::size_t at = structure.at(loop);
  const auto kind = at == kNowhere ? std::nullopt : structure.statements[at].kind;
  if (!kind || !is_loop(*kind)) {
    return std::nullopt;
  }
  auto found = end_in_header(structure, at);
  found = found ? found : caught_end(structure, at);
  return found ? found : end_by_value(structure, at);
}

std::vector<Block> skips_before(const Lines& lines, int line) {
  const Structure& structure = structure_of(lines);
  const std::size_t at = structure.at(line);
  const std::size_t loop = at == kNowhere ? kNowhere : loop_of(structure, at);
  std::vector<Block> out;
  if (loop == kNowhere) {
    return out;
  }
  for (std::size_t i = at; i-- > loop + 1;) {
    const Statement& statement = structure.statements[i];
    const bool tests = statement.kind == BlockKind::kIf || statement.kind == BlockKind::kElif;
    if (tests && !structure.encloses(i, at) && belongs_to(structure, i, loop) &&
        leaving_of(structure, i) == Leaving::kContinue &&
        reads_the_round(structure, loop, statement.header())) {
      out.push_back(block_of(structure, i));
    }
  }
  return out;
}

}  // namespace ddpdoctor::python_source
