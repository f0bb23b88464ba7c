// SPDX-License-Identifier: Apache-2.0
// Reads values while stacks are captured, and stores them as facts of the snapshot.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "collector/model/building/build_model.h"
#include "collector/stacks/capture.h"
#include "collector/values/observe.h"

namespace ddpdoctor::monitor {

/// For one capture: pass its visitor to the capture, then call add_to().
class ValueFacts {
 public:
  /// `known`: source files that an earlier capture has parsed.
  explicit ValueFacts(program::KnownTexts known = {})
      : observer_(values::kTimePerProcess, std::move(known)) {}

  /// Valid as long as this object.
  stacks::PythonVisitor visitor();

  /// Adds the values of the ranks in this snapshot; for processes that were not visited because
  /// they have not run, those in `before`.
  void add_to(model::Look& look, const model::Look* before = nullptr) const;

 private:
  values::Observer observer_;
  std::map<pid_t, std::vector<model::SeenValue>> seen_;
  std::map<pid_t, std::vector<values::SeenLock>> locks_;
  std::map<pid_t, std::vector<values::CalledObject>> objects_;
};

}  // namespace ddpdoctor::monitor
