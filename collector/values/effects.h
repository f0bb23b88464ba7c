// SPDX-License-Identifier: Apache-2.0
// What calling a function of this file may assign. Functions are found by their names alone, so
// that too many may be found; those of other files are not looked for.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collector/program/syntax/source_index.h"

namespace ddpdoctor::values {

/// A place that assigns an attribute or a global name.
struct Writer {
  std::string function;
  int line = 0;
};

/// Names of what is called inside of a node: of `self.model.step(x)` it is "step".
void add_called(program::Node node, std::set<std::string>& names);

/// One file.
class Effects {
 public:
  explicit Effects(const program::SourceIndex& index);

  /// A function that assigns the attribute or global `name` and may be reached by calling one of
  /// these; __init__ counts for its own new object only, and is left out.
  [[nodiscard]] std::optional<Writer> writer(std::string_view name,
                                             const std::set<std::string>& called) const;

 private:
  struct Function {
    std::string name;
    std::set<std::string> calls;
    std::map<std::string, int, std::less<>> writes;  // line of each
  };

  std::vector<Function> functions_;
};

}  // namespace ddpdoctor::values
