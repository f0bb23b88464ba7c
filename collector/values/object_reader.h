// SPDX-License-Identifier: Apache-2.0
// The classes of the objects whose methods the user's running functions call: `self.box.get()`
// takes work if the box is a queue. Only classes and methods of the library table are read.
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

/// The object of one call in a function on a thread's stack.
struct CalledObject {
  pid_t tid = 0;
  std::string file;
  int line = 0;  // of the call
  std::string expression;
  std::string qualified;   // its class: "queue.Queue", "builtins.dict"
  std::size_t number = 0;  // of the object within its process, from 1
};

class ObjectReader {
 public:
  /// All references must outlive this.
  ObjectReader(Evaluator& evaluator, SourceFiles& files, stacks::PythonVisit& visit)
      : evaluator_(evaluator), files_(files), visit_(visit) {}

  std::vector<CalledObject> read();

 private:
  void read_frame(pid_t tid, const stacks::PythonFrame& frame);
  std::string class_of(RemoteAddress object);

  Evaluator& evaluator_;
  SourceFiles& files_;
  stacks::PythonVisit& visit_;
  std::map<RemoteAddress, std::size_t> numbers_;
  std::vector<CalledObject> seen_;
};

}  // namespace ddpdoctor::values
