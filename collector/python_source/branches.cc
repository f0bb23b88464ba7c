// SPDX-License-Identifier: Apache-2.0
// Which conditions were decided to reach a line, and which one parts two lines.
#include <algorithm>
#include <iterator>

#include "collector/python_source/blocks.h"
#include "collector/python_source/dependence.h"
#include "collector/python_source/exits.h"
#include "collector/python_source/inline_conditions.h"
#include "collector/python_source/structure.h"

namespace ddpdoctor::python_source {
namespace {

using Indices = std::vector<std::size_t>;

bool contains(const Indices& all, std::size_t one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

/// The headers around a statement; its own when the line is its inline body.
Indices around(const Structure& structure, std::size_t at, int line) {
  Indices out;
  const Statement& statement = structure.statements[at];
  if (statement.has_inline_body() && statement.body().front().line <= line) {
    out.push_back(at);
    if (statement.kind == BlockKind::kFunction) {
      return out;
    }
  }
  const Indices outer = structure.headers_around(at);
  out.insert(out.end(), outer.begin(), outer.end());
  return out;
}

/// `else` of a try decides nothing; `for` only where its length follows from the rank; `case` only
/// by its guard.
void add_header(const Structure& structure, std::size_t header, std::vector<Block>& out) {
  const Statement& statement = structure.statements[header];
  Block block = block_of(structure, header);
  switch (block.kind) {
    case BlockKind::kElse:
      if (block.condition.empty()) {
        return;
      }
      break;
    case BlockKind::kFor:
      if (dependence_of(structure, statement.header(), header) != Dependence::kRank) {
        return;
      }
      break;
    case BlockKind::kCase: {
      const std::size_t guard = block.condition.find(" if ");
      if (guard == std::string::npos) {
        return;
      }
      block.condition = block.condition.substr(guard + 4);
      break;
    }
    case BlockKind::kIf:
    case BlockKind::kElif:
    case BlockKind::kWhile:
    case BlockKind::kExcept:
    case BlockKind::kMatch:
      break;
    case BlockKind::kTry:
    case BlockKind::kFinally:
    case BlockKind::kWith:
    case BlockKind::kFunction:
    case BlockKind::kClass:
      return;
  }
  out.push_back(block);
  if (block.kind == BlockKind::kElif && statement.opener != kNowhere) {
    // An elif is reached past the conditions before it.
    Block earlier = block_of(structure, statement.opener);
    earlier.kind = BlockKind::kElse;
    for (std::size_t i = structure.statements[statement.opener].opener; i != kNowhere;
         i = structure.statements[i].opener) {
      earlier.condition = text_of(structure.statements[i].header()) + " or " + earlier.condition;
    }
    out.push_back(std::move(earlier));
  }
}

/// `assert rank == 0` leaves by an exception; others are no decision anyone made on purpose.
void add_rank_asserts(const Structure& structure, std::size_t header, std::size_t before,
                      std::vector<Block>& out) {
  for (std::size_t i = before; i-- > (header == kNowhere ? 0 : header + 1);) {
    const Statement& statement = structure.statements[i];
    if (statement.parent != header || !statement.tokens().front().is("assert")) {
      continue;
    }
    const Tokens tested = statement.tokens().subspan(1);
    const Tokens condition = tested.first(find_token(tested, ",", 0));
    if (dependence_of(structure, condition, i) == Dependence::kRank) {
      out.push_back({.kind = BlockKind::kIf,
                     .line = statement.line(),
                     .indent = statement.logical.indent,
                     .text = text_of(statement.tokens()),
                     .condition = text_of(condition)});
    }
  }
}

void add_exits(const Structure& structure, std::size_t header, std::size_t before, std::size_t at,
               std::vector<Block>& out) {
  for (const std::size_t exit : exits_between(structure, header, before, at)) {
    out.push_back(block_of(structure, exit));
  }
  add_rank_asserts(structure, header, before, out);
}

/// True when both headers are links of one if…elif…else or try…except chain, or cases of one match.
bool same_chain(const Structure& structure, std::size_t a, std::size_t b) {
  const auto root = [&structure](std::size_t i) {
    while (structure.statements[i].opener != kNowhere) {
      i = structure.statements[i].opener;
    }
    return i;
  };
  return root(a) == root(b);
}

/// A branch that may part two lines, and how much it explains.
struct Candidate {
  Block block;
  Dependence dependence = Dependence::kNone;
  bool loop = false;
};

class Separation {
 public:
  Separation(const Structure& structure, int line_a, int line_b, std::optional<int> behind)
      : structure_(structure),
        line_a_(line_a),
        line_b_(line_b),
        behind_(behind),
        a_(structure.at(line_a)),
        b_(structure.at(line_b)) {}

  std::optional<Block> find() {
    if (a_ == kNowhere || b_ == kNowhere || a_ == b_ ||
        structure_.function_around(a_) != structure_.function_around(b_)) {
      return std::nullopt;
    }
    const Indices around_a = around(structure_, a_, line_a_);
    const Indices around_b = around(structure_, b_, line_b_);
    std::copy_if(around_a.begin(), around_a.end(), std::back_inserter(only_a_),
                 [&](std::size_t i) { return !contains(around_b, i); });
    std::copy_if(around_b.begin(), around_b.end(), std::back_inserter(only_b_),
                 [&](std::size_t i) { return !contains(around_a, i); });
    if (!only_a_.empty() && !only_b_.empty()) {
      if (const auto fork = fork_of(only_a_.back(), only_b_.back())) {
        return fork;
      }
    }
    if (behind_.value_or(line_a_) == line_a_) {
      add_inline(a_, line_a_);
      add_headers(only_a_);
    }
    if (behind_.value_or(line_b_) == line_b_) {
      add_inline(b_, line_b_);
      add_headers(only_b_);
    }
    if (behind_.value_or(std::max(line_a_, line_b_)) == std::max(line_a_, line_b_)) {
      add_exits_between();
    }
    return best();
  }

 private:
  /// The header that chooses between two suites of one if…else, try…except or match.
  [[nodiscard]] std::optional<Block> fork_of(std::size_t a, std::size_t b) const {
    const Statement& one = structure_.statements[a];
    const Statement& other = structure_.statements[b];
    if (one.kind == BlockKind::kCase && other.kind == BlockKind::kCase && one.parent != kNowhere) {
      return block_of(structure_, one.parent);
    }
    if (!same_chain(structure_, a, b)) {
      return std::nullopt;
    }
    const std::size_t earlier = std::min(a, b);
    const bool tests = structure_.statements[earlier].kind != BlockKind::kTry;
    return block_of(structure_, tests ? earlier : std::max(a, b));
  }

  void add(std::size_t header, bool loop) {
    Block block = block_of(structure_, header);
    const Dependence tested = dependence_of(structure_, block.condition, header);
    candidates_.push_back({.block = std::move(block), .dependence = tested, .loop = loop});
  }

  void add_inline(std::size_t at, int line) {
    for (Block& block : inline_conditions(structure_, at, line)) {
      const Dependence tested = dependence_of(structure_, block.condition, at);
      candidates_.push_back({.block = std::move(block), .dependence = tested, .loop = false});
    }
  }

  void add_headers(const Indices& headers) {
    for (const std::size_t header : headers) {
      const BlockKind kind = *structure_.statements[header].kind;
      if (is_loop(kind)) {
        for (const std::size_t exit : ways_out_of(structure_, header)) {
          add(exit, false);
        }
        add(header, true);
      } else if (is_branch(kind)) {
        add(header, false);
      }
    }
  }

  /// An exit between the lines parts them where the first is reached again: in a loop around both,
  /// or, when it tests the rank, in the function's next call.
  void add_exits_between() {
    const std::size_t first = std::min(a_, b_);
    const std::size_t last = std::max(a_, b_);
    const Indices later = around(structure_, last, std::max(line_a_, line_b_));
    for (std::size_t i = first + 1; i < last; ++i) {
      if (!is_exit_branch(structure_, i) || contains(later, i) ||
          structure_.function_around(i) != structure_.function_around(last)) {
        continue;
      }
      const std::size_t loop = loop_of(structure_, i);
      const bool repeats =
          loop != kNowhere && structure_.encloses(loop, first) && structure_.encloses(loop, last);
      const Block block = block_of(structure_, i);
      if (repeats || dependence_of(structure_, block.condition, i) == Dependence::kRank) {
        add(i, false);
      }
    }
  }

  [[nodiscard]] std::optional<Block> best() const {
    const Candidate* chosen = nullptr;
    const auto worth = [](const Candidate& c) {
      if (c.dependence == Dependence::kRank) {
        return 4;
      }
      if (c.dependence == Dependence::kData) {
        return c.loop ? 2 : 3;
      }
      return c.loop ? 0 : 1;
    };
    for (const Candidate& candidate : candidates_) {
      const int value = worth(candidate);
      const bool while_true = value == 0 && candidate.block.kind == BlockKind::kWhile;
      const bool better =
          chosen == nullptr || value > worth(*chosen) ||
          (value == worth(*chosen) && candidate.block.indent > chosen->block.indent);
      if (!while_true && better) {
        chosen = &candidate;
      }
    }
    return chosen == nullptr ? std::nullopt : std::optional(chosen->block);
  }

  const Structure& structure_;
  int line_a_;
  int line_b_;
  std::optional<int> behind_;
  std::size_t a_;
  std::size_t b_;
  Indices only_a_;
  Indices only_b_;
  std::vector<Candidate> candidates_;
};

}  // namespace

std::vector<Block> deciding_branches(const Lines& lines, int line) {
  const Structure& structure = structure_of(lines);
  const std::size_t at = structure.at(line);
  std::vector<Block> out;
  if (at == kNowhere) {
    return out;
  }
  out = inline_conditions(structure, at, line);
  std::size_t inner = at;
  for (const std::size_t header : around(structure, at, line)) {
    if (header != at) {
      add_exits(structure, header, inner, at, out);
    }
    if (structure.statements[header].kind == BlockKind::kFunction) {
      return out;
    }
    add_header(structure, header, out);
    inner = header;
  }
  add_exits(structure, kNowhere, inner, at, out);
  return out;
}

std::vector<Block> loop_exits(const Lines& lines, int line) {
  const Structure& structure = structure_of(lines);
  const std::size_t at = structure.at(line);
  std::vector<Block> out;
  if (at == kNowhere) {
    return out;
  }
  for (const std::size_t header : structure.headers_around(at)) {
    if (is_loop(*structure.statements[header].kind)) {
      for (const std::size_t exit : ways_out_of(structure, header)) {
        out.push_back(block_of(structure, exit));
      }
    }
  }
  return out;
}

std::optional<Block> separating_branch(const Lines& lines, int line_a, int line_b,
                                       std::optional<int> behind) {
  const Structure& structure = structure_of(lines);
  return Separation(structure, line_a, line_b, behind).find();
}

}  // namespace ddpdoctor::python_source
