// SPDX-License-Identifier: Apache-2.0
// What calling a function of the user's files may change. Functions are found by their names alone,
// so that too many may be found; those of files that nobody read are not found.
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

/// Names of what is called inside of a node: of `self.model.step(x)` it is "step".
void add_called(program::Node node, std::set<std::string>& names);

/// `self.rows.append(x)`: a method of a container that changes it. Of other bindings always true.
bool changes_something(const program::Binding& binding);

/// The functions of one file.
struct FileEffects {
  struct Function {
    std::string name;
    std::set<std::string> calls;
    std::map<std::string, int, std::less<>> writes;  // line of each
  };

  explicit FileEffects(const program::SourceIndex& index);

  std::vector<Function> functions;
  std::set<std::string, std::less<>> written;  // by any of them
};

/// Files of one process.
class Effects {
 public:
  /// The file must outlive this; it counts once.
  void add(const FileEffects& file);

  /// A function that assigns the attribute or global `name`, or changes the container that it
  /// holds, and may be reached by calling one of these; __init__ counts for its own new object
  /// only, and is left out.
  [[nodiscard]] std::optional<Writer> writer(std::string_view name,
                                             const std::set<std::string>& called) const;

 private:
  std::vector<const FileEffects*> files_;
};

}  // namespace ddpdoctor::values
