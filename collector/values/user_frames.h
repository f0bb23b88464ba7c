// SPDX-License-Identifier: Apache-2.0
// Collects the frames of user functions in a process, each with its source. Skips library files,
// and threads that do not call collectives.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "collector/program/syntax/source_index.h"
#include "collector/stacks/python/scopes.h"
#include "collector/stacks/python_visit.h"
#include "collector/values/decision_reader.h"
#include "collector/values/freshness.h"
#include "collector/values/source_files.h"

namespace ddpdoctor::values {

/// A frame of a user function, with its source.
struct UserFrame {
  const stacks::PythonFrame* python;
  const program::SourceIndex& index;
  const program::Scope& function;
  stacks::Scope scope;
  Way way;
  const stacks::RaisedException* handles;  // handled by its thread, in any frame; may be null

  [[nodiscard]] const stacks::Frame& frame() const {
    return python->frame;
  }
  [[nodiscard]] Whereabouts whereabouts() const {
    return {.file = frame().file, .function = frame().function, .at = frame().line};
  }
};

class UserFrames {
 public:
  /// Receives the frame of a comprehension, which is not a function in the source.
  using Comprehension = std::function<void(const stacks::Frame&, const program::SourceIndex&)>;

  /// Both arguments must outlive this, and this must outlive the frames.
  UserFrames(stacks::PythonVisit& visit, SourceFiles& files) : visit_(visit), files_(files) {}

  /// The frames, innermost first. Reads their source files.
  std::vector<UserFrame> read(const Comprehension& comprehension);
  /// The frames of suspended generators that loops in these frames iterate over, nearest first.
  std::vector<UserFrame> of_generators(const std::vector<UserFrame>& frames);

 private:
  bool stands(const stacks::RawPythonFrame& raw);
  void add(const stacks::PythonFrame& one, const stacks::RaisedException* handles,
           const Comprehension& comprehension, std::vector<UserFrame>& out);

  stacks::PythonVisit& visit_;
  SourceFiles& files_;
  std::deque<stacks::PythonFrame> suspended_;
};

}  // namespace ddpdoctor::values
