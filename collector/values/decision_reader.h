// SPDX-License-Identifier: Apache-2.0
// What one decision came out to, and what it reads, as values for the model.
#pragma once

#include <string>
#include <vector>

#include "collector/model/observed_values.h"
#include "collector/program/syntax/node.h"
#include "collector/values/evaluator.h"
#include "collector/values/freshness.h"

namespace ddpdoctor::values {

/// The function that a value belongs to, and where in it the process is.
struct Whereabouts {
  std::string file;
  std::string function;
  int at = 0;
};

class DecisionReader {
 public:
  /// Both must outlive this.
  DecisionReader(Evaluator& evaluator, std::vector<model::SeenValue>& out)
      : evaluator_(evaluator), out_(out) {}

  /// `is_test`: its truth decides, not its value. A decision that was not reached is left out.
  void add(const Whereabouts& where, const Since& since, program::Node condition, int line,
           bool is_test, Names& names);

  /// A value that is not known yet.
  static model::SeenValue made(model::ValueRole role, const Whereabouts& where, int line,
                               const std::string& expression);
  /// Its text without what looks like a secret, by the name of the expression or by its own shape.
  std::string shown(const Value& value, const std::string& expression);

 private:
  void add_operands(const Whereabouts& where, int line, const Expression& whole,
                    const Expression& part, const Since& since, Names& names);

  Evaluator& evaluator_;
  std::vector<model::SeenValue>& out_;
};

}  // namespace ddpdoctor::values
