// SPDX-License-Identifier: Apache-2.0
// What a call of the user's functions may change. Functions are matched by name only, so too many
// may be found; functions in files that were not read are not found.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collector/program/syntax/bindings.h"
#include "collector/program/syntax/source_index.h"

namespace ddpdoctor::values {

/// A place that assigns an attribute or a global name.
struct Writer {
  std::string function;
  int line = 0;
};

/// Adds the names of the callees in a node: "step" for `self.model.step(x)`.
void add_called(program::Node node, std::set<std::string>& names);

/// `self.rows.append(x)`: a container method that changes the container. Always true for other
/// bindings.
bool changes_something(const program::Binding& binding);

/// The effects of the functions in one file.
struct FileEffects {
  struct Function {
    std::string name;
    std::set<std::string> calls;
    std::map<std::string, int, std::less<>> writes;  // name → line
  };

  explicit FileEffects(const program::SourceIndex& index);

  std::vector<Function> functions;
  std::set<std::string, std::less<>> written;  // written by any of them
};

/// The files of one process.
class Effects {
 public:
  /// The file must outlive this; adding it again has no effect.
  void add(const FileEffects& file);

  /// A function that assigns the attribute or global `name`, or changes the container it holds, and
  /// that calls of these functions may reach. Omits __init__, which only sets its own new object.
  [[nodiscard]] std::optional<Writer> writer(std::string_view name,
                                             const std::set<std::string>& called) const;

 private:
  std::vector<const FileEffects*> files_;
};

}  // namespace ddpdoctor::values
