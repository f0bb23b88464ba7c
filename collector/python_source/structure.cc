// SPDX-License-Identifier: Apache-2.0
#include "collector/python_source/structure.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace ddpdoctor::python_source {
namespace {

constexpr std::array<std::pair<std::string_view, BlockKind>, 13> kKeywords = {{
    {"if", BlockKind::kIf},
    {"elif", BlockKind::kElif},
    {"else", BlockKind::kElse},
    {"for", BlockKind::kFor},
    {"while", BlockKind::kWhile},
    {"try", BlockKind::kTry},
    {"except", BlockKind::kExcept},
    {"finally", BlockKind::kFinally},
    {"with", BlockKind::kWith},
    {"match", BlockKind::kMatch},
    {"case", BlockKind::kCase},
    {"def", BlockKind::kFunction},
    {"class", BlockKind::kClass},
}};

/// The colon that ends a header: the first outside brackets that belongs to no lambda.
std::size_t header_colon(Tokens tokens) {
  int lambdas = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].depth != 0) {
      continue;
    }
    if (tokens[i].is("lambda")) {
      ++lambdas;
    } else if (tokens[i].is(":")) {
      if (lambdas == 0) {
        return i;
      }
      --lambdas;
    }
  }
  return kNowhere;
}

/// `match` and `case` are ordinary names, too: `match = re.match(x)`, `case(1)`.
bool is_soft_header(Tokens tokens, std::size_t keyword, std::size_t colon) {
  const bool soft = tokens[keyword].is("match") || tokens[keyword].is("case");
  if (!soft) {
    return true;
  }
  const bool names_something = keyword + 1 < colon && !tokens[keyword + 1].is("=") &&
                               !tokens[keyword + 1].is(".") && !tokens[keyword + 1].is(",");
  return names_something && find_token(tokens.first(colon), "=", 0) == colon;
}

void classify(Statement& statement) {
  const Tokens tokens = statement.tokens();
  statement.keyword = tokens.size() > 1 && tokens[0].is("async") ? 1 : 0;
  const auto found = std::find_if(kKeywords.begin(), kKeywords.end(), [&](const auto& entry) {
    return tokens[statement.keyword].is(entry.first);
  });
  if (found == kKeywords.end()) {
    return;
  }
  const std::size_t colon = header_colon(tokens);
  if (colon == kNowhere || !is_soft_header(tokens, statement.keyword, colon)) {
    return;
  }
  statement.kind = found->second;
  statement.colon = colon;
}

bool continues_chain(BlockKind kind) {
  return kind == BlockKind::kElif || kind == BlockKind::kElse || kind == BlockKind::kExcept ||
         kind == BlockKind::kFinally;
}

/// The nearest header before `index` with the same parent and indentation.
std::size_t header_before(const std::vector<Statement>& all, std::size_t index) {
  const Statement& me = all[index];
  for (std::size_t i = index; i-- > 0;) {
    const Statement& other = all[i];
    if (other.logical.indent < me.logical.indent) {
      return kNowhere;
    }
    if (other.logical.indent == me.logical.indent) {
      return other.kind ? i : kNowhere;
    }
  }
  return kNowhere;
}

}  // namespace

Tokens Statement::header() const {
  if (!kind || *kind == BlockKind::kFunction || *kind == BlockKind::kClass) {
    return {};
  }
  const Tokens all = tokens().first(colon).subspan(keyword + 1);
  if (*kind == BlockKind::kFor) {
    const std::size_t in = find_token(all, "in", 0);
    return in == all.size() ? all : all.subspan(in + 1);
  }
  return all;
}

Tokens Statement::body() const {
  return kind ? tokens().subspan(colon + 1) : tokens();
}

std::size_t Structure::at(int line) const {
  const auto after = std::upper_bound(
      statements.begin(), statements.end(), line,
      [](int wanted, const Statement& s) { return wanted < s.logical.first_line; });
  if (after == statements.begin()) {
    return kNowhere;
  }
  const auto index = static_cast<std::size_t>(after - statements.begin()) - 1;
  return line <= statements[index].logical.last_line ? index : kNowhere;
}

std::vector<std::size_t> Structure::headers_around(std::size_t statement) const {
  std::vector<std::size_t> out;
  for (std::size_t i = statements[statement].parent; i != kNowhere; i = statements[i].parent) {
    out.push_back(i);
    if (statements[i].kind == BlockKind::kFunction) {
      break;
    }
  }
  return out;
}

std::size_t Structure::function_around(std::size_t statement) const {
  const bool own =
      statements[statement].kind == BlockKind::kFunction && statements[statement].has_inline_body();
  std::size_t i = own ? statement : statements[statement].parent;
  while (i != kNowhere && statements[i].kind != BlockKind::kFunction) {
    i = statements[i].parent;
  }
  return i;
}

std::size_t Structure::end_of_suite(std::size_t header) const {
  std::size_t i = header + 1;
  while (i < statements.size() &&
         statements[i].logical.indent > statements[header].logical.indent) {
    ++i;
  }
  return i;
}

std::size_t Structure::last_in_suite(std::size_t header) const {
  std::size_t last = kNowhere;
  for (std::size_t i = header + 1; i < end_of_suite(header); ++i) {
    if (statements[i].parent == header) {
      last = i;
    }
  }
  return last;
}

bool Structure::encloses(std::size_t header, std::size_t statement) const {
  return statement > header && statement < end_of_suite(header);
}

namespace {

Structure build_structure(const Lines& lines) {
  Structure out;
  for (LogicalLine& logical : logical_lines(lines)) {
    Statement statement;
    statement.logical = std::move(logical);
    classify(statement);
    out.statements.push_back(std::move(statement));
  }
  std::vector<std::size_t> open;  // one statement per indentation, outermost first
  for (std::size_t i = 0; i < out.statements.size(); ++i) {
    Statement& me = out.statements[i];
    while (!open.empty() && out.statements[open.back()].logical.indent >= me.logical.indent) {
      open.pop_back();
    }
    // In a capture with few lines the header may be missing: then the next one outwards is the
    // parent.
    const auto header = std::find_if(open.rbegin(), open.rend(), [&out](std::size_t index) {
      return out.statements[index].kind && !out.statements[index].has_inline_body();
    });
    me.parent = header == open.rend() ? kNowhere : *header;
    if (me.kind && (continues_chain(*me.kind))) {
      me.opener = header_before(out.statements, i);
    }
    open.push_back(i);
  }
  return out;
}

}  // namespace

const Structure& structure_of(const Lines& lines) {
  return lines.once<Structure>([&lines] { return build_structure(lines); });
}

bool is_branch(BlockKind kind) {
  return kind == BlockKind::kIf || kind == BlockKind::kElif || kind == BlockKind::kElse ||
         kind == BlockKind::kExcept || kind == BlockKind::kMatch || kind == BlockKind::kCase;
}

}  // namespace ddpdoctor::python_source
