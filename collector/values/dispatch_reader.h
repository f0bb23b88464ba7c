// SPDX-License-Identifier: Apache-2.0
// Determines which functions the calls in a function run: methods by the class of their object,
// items of tables, callbacks in a list, partials. For a loop over callbacks, lists all of them in
// order, because the loop may have ended.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collector/program/syntax/source_index.h"
#include "collector/values/decision_reader.h"
#include "collector/values/evaluator.h"
#include "collector/values/freshness.h"

namespace ddpdoctor::values {

class DispatchReader {
 public:
  /// All arguments must outlive this.
  DispatchReader(Evaluator& evaluator, stacks::PythonObjects& objects,
                 std::vector<model::SeenValue>& out)
      : evaluator_(evaluator), objects_(objects), out_(out) {}

  /// Whether the values that an expression reads are the same as when its line ran. The second form
  /// also judges by what the evaluation read.
  using Freshly = std::function<Since(program::Node expression, program::Node owner)>;
  using ReadFreshly = std::function<Since(program::Node expression, program::Node owner,
                                          const std::set<std::string>& read)>;

  struct In {
    const Whereabouts& where;
    const program::Scope& function;
    Names& names;
    const Freshly& freshly;
    ReadFreshly read_freshly{};
  };

  /// Reads the calls nearest to the current line first.
  void read(const In& in);

 private:
  void add(const In& in, program::Node call);
  std::optional<std::vector<model::CallSite>> in_loop(const In& in, program::Node callee,
                                                      program::Node loop);
  std::optional<std::vector<Value>> elements(const Expression& iterable, Names& names,
                                             std::size_t part);
  model::CallSite reached(const Value& value, int depth = 0);

  Evaluator& evaluator_;
  stacks::PythonObjects& objects_;
  std::vector<model::SeenValue>& out_;
};

}  // namespace ddpdoctor::values
