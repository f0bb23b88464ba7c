// SPDX-License-Identifier: Apache-2.0
// Values are read at a rank's current line, but a decision was made earlier. Determines whether the
// tested values can have changed in between.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collector/program/syntax/bindings.h"
#include "collector/program/syntax/decisions.h"
#include "collector/program/syntax/source_index.h"
#include "collector/values/effects.h"

namespace ddpdoctor::values {

/// Names and attributes that an expression reads, as written: "self.ctx.leader", "step".
std::vector<std::string> operands_of(program::Node expression);

enum class Freshness {
  kFresh,       // nothing that it reads was assigned between the decision and the current line
  kStale,       // something may have been assigned
  kNotReached,  // the line is ahead: nothing was decided yet
};

/// For a decision ahead, in a function that a loop calls.
inline constexpr std::string_view kNotAgain = "not reached again yet";

struct Since {
  Freshness freshness = Freshness::kFresh;
  std::string reason{};  // "`best` is assigned in line 31"
};

/// A loop that a `break` leaves; the break of an inner loop also counts.
bool has_break(program::Node loop);

/// The bytes of a function between a decision and a line.
struct Stretch {
  std::uint32_t from = 0;  // begin
  std::uint32_t to = 0;    // end; before `from` if the path wraps around `loop`
  program::Node loop{};    // contains both; its header runs once more

  [[nodiscard]] bool passes(program::Node node) const {
    if (!loop) {
      return node.begin() >= from && node.begin() < to;
    }
    return loop.holds(node) && (node.begin() >= from || node.begin() < to);
  }
};

/// Answers questions about one function for a rank that is at `line` of it.
class Way {
 public:
  /// All references must outlive this.
  Way(const program::SourceIndex& index, const Effects& effects, const program::Scope& function,
      int line);

  /// Judged by the names in the decision's text.
  [[nodiscard]] Since since(const program::Decision& decision) const;
  /// Judged by the attributes and globals that the evaluation read, including in functions it
  /// calls.
  [[nodiscard]] Since since(const program::Decision& decision,
                            const std::set<std::string>& read) const;
  /// The result of the test, if the line alone implies it: the line is in one of its suites.
  [[nodiscard]] std::optional<bool> outcome(const program::Decision& decision) const;
  /// The line is in the body of the loop with this decision as its header.
  [[nodiscard]] bool is_in(const program::Decision& loop) const;
  [[nodiscard]] bool is_behind(const program::Decision& loop) const;
  [[nodiscard]] const std::vector<program::Binding>& bindings() const {
    return bindings_;
  }
  [[nodiscard]] bool lies_in(program::Node node) const {
    return here_ && node && node.holds(here_);
  }
  /// The line lies behind a `while True` that only this part of it leads out of.
  [[nodiscard]] bool left_by(program::Node arm) const;
  /// The line lies after the whole statement.
  [[nodiscard]] bool is_past(program::Node statement) const {
    return here_ && here_.begin() >= statement.end();
  }

 private:
  [[nodiscard]] Since changed_by_calls(const Stretch& way,
                                       const std::set<std::string>& paths) const;

  const Effects& effects_;
  const program::Scope& function_;
  int line_;
  program::Node here_;
  std::vector<program::Binding> bindings_;
};

}  // namespace ddpdoctor::values
