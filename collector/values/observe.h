// SPDX-License-Identifier: Apache-2.0
// Reads the values of the user's functions on the stacks of a process: the result of each decision,
// what it reads, and the functions' local variables.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "collector/model/observed_values.h"
#include "collector/program/known_texts.h"
#include "collector/stacks/python_visit.h"
#include "collector/values/lock_reader.h"
#include "collector/values/object_reader.h"

namespace ddpdoctor::values {

inline constexpr std::chrono::microseconds kTimePerProcess{2000};

class SourceFiles;

/// Reads one process after the other; what they have in common is read once.
class Observer {
 public:
  /// `time` limits each process, without reading and parsing its files; `known`: files that were
  /// parsed before.
  explicit Observer(std::chrono::microseconds time = kTimePerProcess,
                    program::KnownTexts known = {});
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  Observer(Observer&&) = delete;
  Observer& operator=(Observer&&) = delete;
  ~Observer();

  /// The values of the visited process.
  std::vector<model::SeenValue> observe(stacks::PythonVisit& visit);
  /// The source files that were read for it; copies share what was parsed.
  [[nodiscard]] program::KnownTexts texts() const;
  /// The locks that its threads hold or wait for.
  std::vector<SeenLock> locks(stacks::PythonVisit& visit);
  /// The objects whose methods its running functions call.
  std::vector<CalledObject> objects(stacks::PythonVisit& visit);

 private:
  std::chrono::microseconds time_;
  std::unique_ptr<SourceFiles> files_;
};

}  // namespace ddpdoctor::values
