// SPDX-License-Identifier: Apache-2.0
// The progress of the `for` loops of a frame: those around its line, those it has left, and the
// clauses of comprehensions. Read from their iterators; a loop whose iterator cannot be read says
// so.
#pragma once

#include <string_view>
#include <vector>

#include "collector/model/observed_values.h"
#include "collector/program/syntax/decisions.h"
#include "collector/stacks/python/scopes.h"
#include "collector/stacks/stack.h"
#include "collector/values/decision_reader.h"
#include "collector/values/evaluator.h"
#include "collector/values/freshness.h"
#include "collector/values/loop_items.h"

namespace ddpdoctor::values {

class LoopReader {
 public:
  /// Both references must outlive this.
  LoopReader(Evaluator& evaluator, stacks::PythonObjects& objects,
             std::vector<model::SeenValue>& out)
      : evaluator_(evaluator), items_(evaluator, objects), out_(out) {}

  /// The parts of a frame that concern its loops.
  struct In {
    Whereabouts where;
    const std::vector<stacks::Iteration>& iterations;
    const Way& way;
    const stacks::Scope& scope;
  };

  /// Adds the progress of each `for` loop around the line, and the loops that were left.
  void add(const In& frame, const std::vector<program::Decision>& decisions);
  void add_comprehension(const stacks::Frame& frame, const program::SourceIndex& index);
  /// A loop that the rank is not in: how many items it goes over, by what its header names.
  void add_length(const Whereabouts& where, const program::Decision& loop, const Since& since,
                  Names& names);

 private:
  void add_one(const Whereabouts& where, const program::Decision& loop, const std::string& text,
               std::optional<std::int64_t> items = std::nullopt);
  std::optional<std::int64_t> items_of(const In& frame, const program::Decision& loop);

  Evaluator& evaluator_;
  LoopItems items_;
  std::vector<model::SeenValue>& out_;
};

}  // namespace ddpdoctor::values
