// SPDX-License-Identifier: Apache-2.0
// Values are read where a rank is now; a decision was made before. Whether what it tested can have
// changed on the way.
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
  kFresh,       // nothing that it reads was assigned on the way from there to here
  kStale,       // something may have been
  kNotReached,  // the line lies ahead: it has decided nothing yet
};

/// Of what lies ahead in a function that is called in a loop.
inline constexpr std::string_view kNotAgain = "not reached again yet";

struct Since {
  Freshness freshness = Freshness::kFresh;
  std::string reason{};  // "`best` is assigned in line 31"
};

/// A loop that a `break` leaves; one of a loop inside it counts, too.
bool has_break(program::Node loop);

/// Which bytes of a function lie on the way from a decision to a line.
struct Stretch {
  std::uint32_t from = 0;  // it leads from here …
  std::uint32_t to = 0;    // … to here, or, where it wraps, round `loop` to here
  program::Node loop{};    // around both, its header passed once more

  [[nodiscard]] bool passes(program::Node node) const {
    if (!loop) {
      return node.begin() >= from && node.begin() < to;
    }
    return loop.holds(node) && (node.begin() >= from || node.begin() < to);
  }
};

/// Asks of one function, for a rank that is at `line` of it.
class Way {
 public:
  /// All must outlive this.
  Way(const program::SourceIndex& index, const Effects& effects, const program::Scope& function,
      int line);

  /// By what the decision reads as written.
  [[nodiscard]] Since since(const program::Decision& decision) const;
  /// By these attributes and globals, which working it out has read: also in functions that it
  /// calls.
  [[nodiscard]] Since since(const program::Decision& decision,
                            const std::set<std::string>& read) const;
  /// What the test came out to, where the line alone tells: it lies in one of its arms.
  [[nodiscard]] std::optional<bool> outcome(const program::Decision& decision) const;
  /// The line lies in the body of the loop that this decision is the header of.
  [[nodiscard]] bool is_in(const program::Decision& loop) const;
  [[nodiscard]] bool is_behind(const program::Decision& loop) const;

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
