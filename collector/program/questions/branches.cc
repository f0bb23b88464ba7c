// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/branches.h"

#include <algorithm>
#include <iterator>

#include "collector/program/questions/block_of.h"
#include "collector/program/questions/inline_conditions.h"
#include "collector/program/questions/leaving.h"

namespace ddpdoctor::program {
namespace {

using Indices = std::vector<std::size_t>;

bool contains(const Indices& all, std::size_t one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

/// An elif is reached only after the conditions before it were false.
void add_earlier_links(const Code& code, std::size_t header, std::vector<Branching>& out) {
  const std::size_t before = code.link_before(header);
  if (before == kNone) {
    return;
  }
  Block earlier = block_of(code, before);
  earlier.kind = BlockKind::kElse;
  for (std::size_t i = code.link_before(before); i != kNone; i = code.link_before(i)) {
    earlier.condition = code.header_expression(i) + " or " + earlier.condition;
  }
  out.push_back({.block = std::move(earlier)});
}

/// `else` of a try decides nothing; `for` counts only if its length follows from the rank, `case`
/// only by its guard.
void add_header(const Code& code, std::size_t header, std::vector<Branching>& out) {
  Branching found{.block = block_of(code, header)};
  switch (found.block.kind) {
    case BlockKind::kElse:
      if (found.block.condition.empty()) {
        return;
      }
      break;
    case BlockKind::kFor:
      found.by_rank_only = true;
      break;
    case BlockKind::kCase: {
      const Node guard = code[header].node.field(Field::kGuard);
      if (!guard) {
        return;
      }
      found.block.condition = guard.first_child().one_line();
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
  const bool chained = found.block.kind == BlockKind::kElif;
  out.push_back(std::move(found));
  if (chained) {
    add_earlier_links(code, header, out);
  }
}

/// `assert rank == 0` leaves by an exception; other assertions are not deliberate decisions.
void add_asserts(const Code& code, std::size_t header, std::size_t before,
                 std::vector<Branching>& out) {
  for (std::size_t i = before; i-- > (header == kNone ? 0 : header + 1);) {
    if (code.kind(i) == NodeKind::kAssert && code.parent(i) == header) {
      const Node node = code[i].node;
      out.push_back({.block = {.kind = BlockKind::kIf,
                               .line = node.line(),
                               .indent = node.indent(),
                               .text = node.one_line(),
                               .condition = node.first_child().one_line()},
                     .by_rank_only = true});
    }
  }
}

void add_exits(const Code& code, std::size_t header, std::size_t before, std::size_t at,
               std::vector<Branching>& out) {
  for (const std::size_t exit : exits_between(code, header, before, at)) {
    out.push_back({.block = block_of(code, exit)});
  }
  add_asserts(code, header, before, out);
}

/// The branches that lead to one of two statements but not to the other.
class Separation {
 public:
  Separation(const Code& code, std::size_t a, std::size_t b, int line_a, int line_b)
      : code_(code), a_(a), b_(b), line_a_(line_a), line_b_(line_b) {}

  std::vector<Branching> find(int behind) {
    const Indices around_a = code_.headers_around(a_);
    const Indices around_b = code_.headers_around(b_);
    Indices only_a;
    Indices only_b;
    std::copy_if(around_a.begin(), around_a.end(), std::back_inserter(only_a),
                 [&](std::size_t i) { return !contains(around_b, i); });
    std::copy_if(around_b.begin(), around_b.end(), std::back_inserter(only_b),
                 [&](std::size_t i) { return !contains(around_a, i); });
    if (!only_a.empty() && !only_b.empty()) {
      if (const std::size_t fork = fork_of(only_a.back(), only_b.back()); fork != kNone) {
        return {{.block = block_of(code_, fork), .forks = true}};
      }
    }
    if (behind == 0 || behind == line_a_) {
      add_all(a_, line_a_, only_a);
    }
    if (behind == 0 || behind == line_b_) {
      add_all(b_, line_b_, only_b);
    }
    if (behind == 0 || behind == std::max(line_a_, line_b_)) {
      add_exits_between();
    }
    return std::move(out_);
  }

 private:
  /// The header that chooses between two suites of one if…else, try…except or match.
  [[nodiscard]] std::size_t fork_of(std::size_t a, std::size_t b) const {
    if (code_.kind(a) == NodeKind::kCase && code_.kind(b) == NodeKind::kCase &&
        code_.parent(a) == code_.parent(b)) {
      return code_.parent(a);
    }
    if (!code_.same_chain(a, b)) {
      return kNone;
    }
    const std::size_t earlier = std::min(a, b);
    return code_.kind(earlier) == NodeKind::kTry ? std::max(a, b) : earlier;
  }

  void add_all(std::size_t at, int line, const Indices& headers) {
    for (Block& block : inline_conditions(code_, at, line)) {
      out_.push_back({.block = std::move(block)});
    }
    for (const std::size_t header : headers) {
      if (code_.is_loop(header)) {
        for (const std::size_t exit : ways_out_of(code_, header)) {
          out_.push_back({.block = block_of(code_, exit)});
        }
        out_.push_back({.block = block_of(code_, header), .loop = true});
      } else if (Block block = block_of(code_, header); is_branch(block.kind)) {
        out_.push_back({.block = std::move(block)});
      }
    }
  }

  /// An exit between the lines separates them if the first line is reached again: in a loop around
  /// both, or, if the exit tests the rank, in the next call of the function.
  void add_exits_between() {
    const std::size_t first = std::min(a_, b_);
    const std::size_t last = std::max(a_, b_);
    const Indices later = code_.headers_around(last);
    for (std::size_t i = first + 1; i < last; ++i) {
      if (!is_exit_branch(code_, i) || contains(later, i) ||
          code_.function_around(i) != code_.function_around(last)) {
        continue;
      }
      const std::size_t loop = code_.loop_around(i);
      const bool repeats =
          loop != kNone && code_.encloses(loop, first) && code_.encloses(loop, last);
      out_.push_back({.block = block_of(code_, i), .by_rank_only = !repeats});
    }
  }

  const Code& code_;
  std::size_t a_;
  std::size_t b_;
  int line_a_;
  int line_b_;
  std::vector<Branching> out_;
};

}  // namespace

std::vector<Branching> branches_to(const SourceText& text, int line) {
  const Code code(text);
  const std::size_t at = code.at(line);
  std::vector<Branching> out;
  if (at == kNone) {
    return out;
  }
  for (Block& block : inline_conditions(code, at, line)) {
    out.push_back({.block = std::move(block)});
  }
  std::size_t inner = at;
  for (const std::size_t header : code.headers_around(at)) {
    add_exits(code, header, inner, at, out);
    if (code.kind(header) == NodeKind::kFunction) {
      return out;
    }
    add_header(code, header, out);
    inner = header;
  }
  add_exits(code, kNone, inner, at, out);
  return out;
}

std::vector<Branching> branches_between(const SourceText& text, int line_a, int line_b,
                                        std::optional<int> behind) {
  const Code code(text);
  const std::size_t a = code.at(line_a);
  const std::size_t b = code.at(line_b);
  if (a == kNone || b == kNone || a == b || code.function_around(a) != code.function_around(b)) {
    return {};
  }
  return Separation(code, a, b, line_a, line_b).find(behind.value_or(0));
}

}  // namespace ddpdoctor::program
