// SPDX-License-Identifier: Apache-2.0
// Which lock object each `with` of the user's running functions has entered or waits for: two names
// for one lock, in two files, are one lock.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

#include "collector/stacks/python_visit.h"
#include "collector/values/evaluator.h"
#include "collector/values/source_files.h"

namespace ddpdoctor::values {

/// One expression that a `with` or an `acquire()` on a thread's stack names.
struct SeenLock {
  pid_t tid = 0;
  std::string file;
  int line = 0;  // where the frame is
  std::string expression;
  std::size_t lock = 0;  // a number for the object within its process, from 1
};

class LockReader {
 public:
  /// All must outlive this.
  LockReader(Evaluator& evaluator, SourceFiles& files, stacks::PythonVisit& visit)
      : evaluator_(evaluator), files_(files), visit_(visit) {}

  /// Nothing for a process with one thread of Python: no other thread can hold its locks.
  std::vector<SeenLock> read();

 private:
  void read_frame(pid_t tid, const stacks::PythonFrame& frame);
  void add(pid_t tid, const stacks::PythonFrame& frame, program::Node expression);

  Evaluator& evaluator_;
  SourceFiles& files_;
  stacks::PythonVisit& visit_;
  std::map<RemoteAddress, std::size_t> numbers_;
  std::vector<SeenLock> seen_;
};

}  // namespace ddpdoctor::values
