// SPDX-License-Identifier: Apache-2.0
// Reads values while stacks are captured, and keeps them as facts of the look.
#pragma once

#include <map>
#include <set>
#include <vector>

#include <sys/types.h>

#include "collector/model/building/build_model.h"
#include "collector/stacks/capture.h"
#include "collector/values/observe.h"

namespace ddpdoctor::monitor {

/// For one capture: give its visitor to the capture, then ask for the facts.
class ValueFacts {
 public:
  /// Valid as long as this.
  stacks::PythonVisitor visitor();

  /// What was read of the ranks of this look; of processes that were not visited, because they had
  /// not run since, what `before` has.
  void add_to(model::Look& look, const model::Look* before = nullptr) const;

 private:
  values::Observer observer_;
  std::map<pid_t, std::vector<model::SeenValue>> seen_;
  std::map<pid_t, std::vector<values::SeenLock>> locks_;
};

}  // namespace ddpdoctor::monitor
