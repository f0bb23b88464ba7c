// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/kept_batches.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collector/detectors/call_sites/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/python_source/tokens.h"

namespace ddpdoctor::detectors {
namespace {

using python_source::LogicalLine;
using python_source::NameChain;
using python_source::Token;
using python_source::TokenKind;
using python_source::Tokens;

using Names = std::set<std::string, std::less<>>;

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Calls that give the same memory again; all others make something new of it.
bool shares_memory(std::string_view method) {
  constexpr std::array<std::string_view, 9> kMethods = {
      "detach", "view", "reshape", "squeeze", "unsqueeze", "cpu", "numpy", "items", "values"};
  return is_one_of(method, kMethods);
}

bool keeps(std::string_view method) {
  constexpr std::array<std::string_view, 6> kMethods = {"append",     "extend", "add",
                                                        "appendleft", "insert", "update"};
  return is_one_of(method, kMethods);
}

bool opens_call(Tokens tokens, std::size_t bracket) {
  return tokens[bracket].is("(") && bracket > 0 &&
         (tokens[bracket - 1].kind == TokenKind::kName || tokens[bracket - 1].is(")") ||
          tokens[bracket - 1].is("]"));
}

/// One of `names` itself stands in these tokens: not what a function makes of it.
bool holds(Tokens tokens, const Names& names) {
  std::vector<NameChain> chains = python_source::name_chains(tokens);
  return std::any_of(chains.begin(), chains.end(), [&](const NameChain& chain) {
    const bool called = chain.end < tokens.size() && tokens[chain.end].is("(");
    if (!names.contains(chain.words.front()) ||
        (called && (chain.words.size() < 2 || !shares_memory(chain.words.back())))) {
      return false;
    }
    int closed = 0;  // brackets that begin and end before the name
    for (std::size_t i = chain.begin; i-- > 0;) {
      const bool opens = tokens[i].is("(") || tokens[i].is("[") || tokens[i].is("{");
      const bool closes = tokens[i].is(")") || tokens[i].is("]") || tokens[i].is("}");
      if (opens && closed == 0 &&
          (opens_call(tokens, i) ||
           (i > 0 && tokens[i].is("[") && tokens[i - 1].kind == TokenKind::kName))) {
        return false;  // an argument, or an index
      }
      closed += closes ? 1 : opens && closed > 0 ? -1 : 0;
    }
    return true;
  });
}

void add_names(Tokens tokens, Names& names) {
  for (const Token& token : tokens) {
    if (token.kind == TokenKind::kName) {
      names.insert(std::string(token.text));
    }
  }
}

/// "for step, (images, labels) in enumerate(loader)": step, images, labels.
Names loop_names(const LogicalLine& header) {
  Names names;
  const Tokens tokens(header.tokens);
  const std::size_t begin = python_source::find_token(tokens, "for", 0);
  const std::size_t end = python_source::find_token(tokens, "in", 0);
  if (begin < end && end < tokens.size()) {
    add_names(tokens.subspan(begin + 1, end - begin - 1), names);
  }
  return names;
}

/// `kept.append(images)`, `self.cache[step] = batch`, `history += [labels]`; a plain `x = batch`
/// only gives another name.
bool is_kept_by(const LogicalLine& statement, Names& names) {
  const Tokens tokens(statement.tokens);
  const std::size_t equals = python_source::find_token(tokens, "=", 0);
  const std::size_t more = python_source::find_token(tokens, "+=", 0);
  if (more < tokens.size()) {
    return more + 1 < tokens.size() && tokens[more + 1].is("[") &&
           holds(tokens.subspan(more + 1), names);
  }
  if (equals < tokens.size()) {
    if (!holds(tokens.subspan(equals + 1), names)) {
      return false;
    }
    if (equals > 0 && tokens[equals - 1].is("]")) {
      return true;
    }
    add_names(tokens.first(equals), names);
    return false;
  }
  for (const NameChain& chain : python_source::name_chains(tokens)) {
    if (chain.words.size() > 1 && keeps(chain.words.back()) && chain.end < tokens.size() &&
        tokens[chain.end].is("(") && holds(tokens.subspan(chain.end + 1), names)) {
      return true;
    }
  }
  return false;
}

int keeping_line(const python_source::Lines& lines, int line) {
  const auto statements = python_source::logical_lines(lines);
  for (const python_source::Block& loop : python_source::enclosing(lines, line)) {
    if (loop.kind != python_source::BlockKind::kFor) {
      continue;
    }
    Names names;
    for (const LogicalLine& statement : statements) {
      if (statement.first_line == loop.line) {
        names = loop_names(statement);
      } else if (statement.first_line > loop.line) {
        if (statement.indent <= loop.indent) {
          break;
        }
        if (is_kept_by(statement, names)) {
          return statement.first_line;
        }
      }
    }
  }
  return 0;
}

}  // namespace

model::CallSite keeps_batches(const model::JobModel& job, const model::Thread& thread) {
  for (const model::Frame* frame : model::user_frames(thread)) {
    if (const int line = keeping_line(lines_of(job, frame->file), frame->line); line > 0) {
      return {.file = frame->file, .line = line, .function = frame->function};
    }
  }
  return {};
}

model::CallSite chooses_file_system(const model::JobModel& job) {
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, text] : lines) {
      if (model::is_user_file(file) && text.find("set_sharing_strategy(") != std::string::npos &&
          text.find("file_system") != std::string::npos &&
          text.find('#') > text.find("set_sharing_strategy(")) {
        return {.file = file, .line = number, .function = function_around(lines, number)};
      }
    }
  }
  return {};
}

}  // namespace ddpdoctor::detectors
