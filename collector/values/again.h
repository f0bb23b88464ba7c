// SPDX-License-Identifier: Apache-2.0
// A function called in a loop runs its lines in each iteration. A value that they read is unchanged
// since the previous iteration, unless the loop or a function called in it assigns the value.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "collector/program/syntax/source_index.h"
#include "collector/values/effects.h"
#include "collector/values/freshness.h"

namespace ddpdoctor::values {

class Again {
 public:
  /// `function` is at `line`, which may be inside a loop. `effects` must outlive this.
  Again(const Effects& effects, const program::SourceIndex& index, const program::Scope& function,
        int line);

  /// Continues with the next inner function, which is at `line`.
  void enter(const program::SourceIndex& index, const program::Scope& function, int line);
  /// Judges by the names that the expression contains, in the function entered last.
  [[nodiscard]] Since since(const program::SourceIndex& index, const program::Scope& function,
                            program::Node expression) const;
  /// Judges by the attributes and globals that the evaluation read.
  [[nodiscard]] Since since(const std::set<std::string>& read) const;

 private:
  [[nodiscard]] bool is_steady(const program::SourceIndex& index, const program::Scope& function,
                               const std::string& path, bool in_loop) const;
  bool calls_on_steady(const program::SourceIndex& index, const program::Scope& function, int line,
                       bool in_loop) const;
  [[nodiscard]] std::optional<std::string> assigned(const std::string& name) const;

  const Effects& effects_;
  program::Node loop_;
  std::set<std::string> called_;   // callees in the loop
  std::set<std::string> written_;  // names that the loop itself assigns
  bool same_object_ = false;       // each iteration calls the entered method on the same object
};

}  // namespace ddpdoctor::values
