// SPDX-License-Identifier: Apache-2.0
// Values of the user's functions that are on the stacks of a process: what each of their decisions
// comes out to, what it reads, and what the functions have at hand.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "collector/model/observed_values.h"
#include "collector/stacks/python_visit.h"
#include "collector/values/lock_reader.h"

namespace ddpdoctor::values {

inline constexpr std::chrono::microseconds kTimePerProcess{2000};

class SourceFiles;

/// Looks at one process after the other; what they have in common is read once.
class Observer {
 public:
  /// `time` for each process, besides reading and parsing its files.
  explicit Observer(std::chrono::microseconds time = kTimePerProcess);
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  Observer(Observer&&) = delete;
  Observer& operator=(Observer&&) = delete;
  ~Observer();

  /// Values of the process under visit.
  std::vector<model::SeenValue> observe(stacks::PythonVisit& visit);
  /// Locks that its threads hold or wait for.
  std::vector<SeenLock> locks(stacks::PythonVisit& visit);

 private:
  std::chrono::microseconds time_;
  std::unique_ptr<SourceFiles> files_;
};

}  // namespace ddpdoctor::values
