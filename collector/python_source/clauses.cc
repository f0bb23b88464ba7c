// SPDX-License-Identifier: Apache-2.0
#include "collector/python_source/clauses.h"

#include <algorithm>
#include <array>

#include "collector/python_source/exits.h"

namespace ddpdoctor::python_source {
namespace {

/// Says that a thing is not there or that somebody wants to leave; no failure of a step.
bool is_no_failure(std::string_view exception) {
  constexpr std::array<std::string_view, 6> kOthers = {"KeyboardInterrupt",   "SystemExit",
                                                       "GeneratorExit",       "ImportError",
                                                       "ModuleNotFoundError", "Full"};
  return is_end_of_data(exception) ||
         std::find(kOthers.begin(), kOthers.end(), exception) != kOthers.end();
}

bool names_a_failure(const std::vector<std::string_view>& caught) {
  return caught.empty() || !std::all_of(caught.begin(), caught.end(), is_no_failure);
}

/// The last words of the names in an expression: "Empty" of queue.Empty.
std::vector<std::string_view> last_words(Tokens tokens) {
  std::vector<std::string_view> out;
  for (const NameChain& chain : name_chains(tokens)) {
    out.push_back(chain.words.back());
  }
  return out;
}

/// "(OSError, queue.Empty) as e" → OSError, Empty.
std::vector<std::string_view> caught_in(Tokens header) {
  return last_words(header.first(find_token(header, "as", 0)));
}

/// `with contextlib.suppress(RuntimeError)`.
bool suppresses(const Statement& with) {
  std::vector<std::string_view> words = last_words(with.header());
  const auto suppress = std::find(words.begin(), words.end(), "suppress");
  if (suppress == words.end()) {
    return false;
  }
  words.erase(words.begin(), suppress + 1);
  return names_a_failure(words);
}

}  // namespace

std::vector<std::size_t> except_clauses(const Structure& structure, std::size_t a_try) {
  std::vector<std::size_t> out;
  std::size_t before = a_try;
  for (std::size_t i = structure.end_of_suite(a_try); i < structure.statements.size();
       i = structure.end_of_suite(i)) {
    const Statement& statement = structure.statements[i];
    if (statement.opener != before) {
      break;
    }
    if (statement.kind == BlockKind::kExcept) {
      out.push_back(i);
    }
    before = i;
  }
  return out;
}

std::vector<std::string_view> caught_by(const Structure& structure, std::size_t clause) {
  return caught_in(structure.statements[clause].header());
}

bool is_end_of_data(std::string_view exception) {
  constexpr std::array<std::string_view, 6> kEnds = {
      "StopIteration", "StopAsyncIteration", "EOFError", "IndexError", "Empty", "QueueEmpty"};
  return std::find(kEnds.begin(), kEnds.end(), exception) != kEnds.end();
}

std::vector<Block> swallowing_clauses(const Lines& lines, int line) {
  const Structure& structure = structure_of(lines);
  const std::size_t at = structure.at(line);
  std::vector<Block> out;
  if (at == kNowhere) {
    return out;
  }
  for (const std::size_t header : structure.headers_around(at)) {
    const Statement& statement = structure.statements[header];
    if (statement.kind == BlockKind::kWith && suppresses(statement)) {
      out.push_back(block_of(structure, header));
    }
    if (statement.kind != BlockKind::kTry) {
      continue;
    }
    for (const std::size_t clause : except_clauses(structure, header)) {
      if (names_a_failure(caught_by(structure, clause)) && !always_fails(structure, clause)) {
        out.push_back(block_of(structure, clause));
        break;
      }
    }
  }
  return out;
}

std::optional<Block> retry_loop(const Lines& lines, int line) {
  const Structure& structure = structure_of(lines);
  const std::size_t at = structure.at(line);
  bool in_clause = false;
  for (const std::size_t header :
       at == kNowhere ? std::vector<std::size_t>() : structure.headers_around(at)) {
    const auto kind = structure.statements[header].kind;
    if (in_clause && kind && is_loop(*kind)) {
      return block_of(structure, header);
    }
    const bool leaves =
        kind == BlockKind::kExcept &&
        (always_fails(structure, header) || leaving_of(structure, header) == Leaving::kFunction ||
         leaving_of(structure, header) == Leaving::kBreak);
    if (leaves) {
      return std::nullopt;
    }
    in_clause = in_clause || kind == BlockKind::kExcept;
  }
  return std::nullopt;
}

bool catches_failures(const Block& clause) {
  const std::vector<Token> tokens = tokens_of(clause.condition);
  return names_a_failure(caught_in(tokens));
}

bool always_fails(const Lines& lines, int line) {
  const Structure& structure = structure_of(lines);
  const std::size_t at = structure.at(line);
  return at != kNowhere && structure.statements[at].kind && always_fails(structure, at);
}

}  // namespace ddpdoctor::python_source
