// SPDX-License-Identifier: Apache-2.0
// A function that is called in a loop runs its lines again and again. What they read has the same
// value as in the last iteration, unless something in that loop assigns it.
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
  /// `function` is at `line`, inside a loop; `effects` must outlive this.
  Again(const Effects& effects, const program::SourceIndex& index, const program::Scope& function,
        int line);

  /// The next function inwards is at `line`.
  void enter(const program::SourceIndex& index, const program::Scope& function, int line);
  /// Of what an expression of the function that was entered last reads as written.
  [[nodiscard]] Since since(const program::SourceIndex& index, const program::Scope& function,
                            program::Node expression) const;
  /// Of attributes and globals that working it out has read.
  [[nodiscard]] Since since(const std::set<std::string>& read) const;

 private:
  [[nodiscard]] bool is_steady(const program::SourceIndex& index, const program::Scope& function,
                               const std::string& path, bool in_loop) const;
  bool calls_on_steady(const program::SourceIndex& index, const program::Scope& function, int line,
                       bool in_loop) const;
  [[nodiscard]] std::optional<std::string> assigned(const std::string& name) const;

  const Effects& effects_;
  program::Node loop_;
  std::set<std::string> called_;   // by what is done in the loop
  std::set<std::string> written_;  // by the loop itself
  bool same_object_ = false;       // the method that was entered is called on one object each time
};

}  // namespace ddpdoctor::values
