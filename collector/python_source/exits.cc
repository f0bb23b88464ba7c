// SPDX-License-Identifier: Apache-2.0
#include "collector/python_source/exits.h"

#include <algorithm>
#include <array>
#include <string>

namespace ddpdoctor::python_source {
namespace {

bool ends_process(Tokens part) {
  constexpr std::array<std::string_view, 5> kEnds = {"sys.exit(", "exit(", "quit(", "os._exit(",
                                                     "os.abort("};
  const std::string text = text_of(part);
  return std::any_of(kEnds.begin(), kEnds.end(),
                     [&text](std::string_view end) { return text.starts_with(end); });
}

Leaving leaving_of_simple(Tokens part) {
  if (part.empty()) {
    return Leaving::kNothing;
  }
  if (part.front().is("break")) {
    return Leaving::kBreak;
  }
  if (part.front().is("continue")) {
    return Leaving::kContinue;
  }
  // A raise is no way that anybody chose: what follows is the exception's story.
  if (part.front().is("return")) {
    return Leaving::kFunction;
  }
  return ends_process(part) ? Leaving::kFunction : Leaving::kNothing;
}

/// The statement with which a suite that leaves does so.
std::size_t leaving_statement(const Structure& structure, std::size_t header) {
  while (structure.statements[header].kind && !structure.statements[header].has_inline_body()) {
    header = structure.last_in_suite(header);
  }
  return header;
}

}  // namespace

Leaving leaving_of(const Structure& structure, std::size_t header) {
  while (true) {
    const Statement& statement = structure.statements[header];
    if (statement.has_inline_body() || !statement.kind) {
      return leaving_of_simple(split_at(statement.body(), ";", 0).back());
    }
    const std::size_t last = structure.last_in_suite(header);
    if (last == kNowhere) {
      return Leaving::kNothing;
    }
    const auto kind = structure.statements[last].kind;
    if (kind && kind != BlockKind::kWith) {
      return Leaving::kNothing;
    }
    header = last;
  }
}

bool always_fails(const Structure& structure, std::size_t header) {
  // Each pass goes one suite further in, or one link up in a chain of if, elif and else.
  std::vector<std::size_t> open = {header};
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    const Statement& statement = structure.statements[at];
    if (statement.has_inline_body() || !statement.kind) {
      const Tokens last = split_at(statement.body(), ";", 0).back();
      if (last.empty() || !(last.front().is("raise") || ends_process(last))) {
        return false;
      }
      continue;
    }
    const std::size_t last = structure.last_in_suite(at);
    if (last == kNowhere) {
      return false;
    }
    const auto kind = structure.statements[last].kind;
    if (kind && kind != BlockKind::kWith && kind != BlockKind::kElse) {
      return false;
    }
    for (std::size_t i = last; i != kNowhere; i = structure.statements[i].opener) {
      const auto link = structure.statements[i].kind;
      if (link && (is_loop(*link) || *link == BlockKind::kTry || *link == BlockKind::kExcept)) {
        return false;
      }
      open.push_back(i);
    }
  }
  return true;
}

std::size_t loop_of(const Structure& structure, std::size_t statement) {
  for (const std::size_t header : structure.headers_around(statement)) {
    if (is_loop(*structure.statements[header].kind)) {
      return header;
    }
  }
  return kNowhere;
}

bool is_exit_branch(const Structure& structure, std::size_t statement) {
  const auto kind = structure.statements[statement].kind;
  const bool branch =
      kind == BlockKind::kIf || kind == BlockKind::kElif || kind == BlockKind::kElse;
  return branch && leaving_of(structure, statement) != Leaving::kNothing;
}

std::vector<std::size_t> exits_between(const Structure& structure, std::size_t header,
                                       std::size_t before, std::size_t statement) {
  std::vector<std::size_t> out;
  const std::size_t begin = header == kNowhere ? 0 : header + 1;
  const std::size_t function = structure.function_around(statement);
  std::size_t chain_mate = structure.statements[before].opener;
  for (std::size_t i = before; i-- > begin;) {
    if (i == chain_mate) {  // its condition is told by the elif or else itself
      chain_mate = structure.statements[i].opener;
      continue;
    }
    if (!is_exit_branch(structure, i) || structure.function_around(i) != function) {
      continue;
    }
    const std::size_t loop = loop_of(structure, i);
    const bool same_loop = loop != kNowhere && structure.encloses(loop, statement);
    if (leaving_of(structure, i) == Leaving::kFunction || same_loop) {
      out.push_back(i);
    }
  }
  return out;
}

std::vector<std::size_t> ways_out_of(const Structure& structure, std::size_t loop) {
  std::vector<std::size_t> out;
  const std::size_t function = structure.function_around(loop);
  for (std::size_t i = loop + 1; i < structure.end_of_suite(loop); ++i) {
    if (!is_exit_branch(structure, i) || structure.function_around(i) != function) {
      continue;
    }
    const Leaving leaving = leaving_of(structure, i);
    const bool own_break = leaving == Leaving::kBreak && loop_of(structure, i) == loop;
    if (own_break || leaving == Leaving::kFunction) {
      out.push_back(i);
    }
  }
  return out;
}

std::vector<WayOut> ways_out_before(const Lines& lines, int line) {
  const Structure& structure = structure_of(lines);
  const std::size_t at = structure.at(line);
  std::vector<WayOut> out;
  if (at == kNowhere) {
    return out;
  }
  std::vector<std::size_t> around = structure.headers_around(at);
  const bool in_function =
      !around.empty() && structure.statements[around.back()].kind == BlockKind::kFunction;
  if (!in_function) {
    around.push_back(kNowhere);
  }
  std::size_t inner = at;
  for (const std::size_t header : around) {
    if (header == at) {
      continue;
    }
    for (const std::size_t exit : exits_between(structure, header, inner, at)) {
      if (leaving_of(structure, exit) == Leaving::kFunction) {
        out.push_back({.line = structure.statements[leaving_statement(structure, exit)].line(),
                       .condition = block_of(structure, exit).condition});
      }
    }
    inner = header;
  }
  return out;
}

}  // namespace ddpdoctor::python_source
