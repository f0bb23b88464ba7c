// SPDX-License-Identifier: Apache-2.0
// Frames of the user's functions in a process, each with its source. Threads that take no part in
// the job's calls and files of libraries are left out.
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

/// A frame of the user's with its source.
struct UserFrame {
  const stacks::PythonFrame* python;
  const program::SourceIndex& index;
  const program::Scope& function;
  stacks::Scope scope;
  Way way;
  const stacks::RaisedException* handles;  // by its thread, in this frame or another; may be null

  [[nodiscard]] const stacks::Frame& frame() const {
    return python->frame;
  }
  [[nodiscard]] Whereabouts whereabouts() const {
    return {.file = frame().file, .function = frame().function, .at = frame().line};
  }
};

class UserFrames {
 public:
  /// A frame of a comprehension: it has no function of its own in the source.
  using Comprehension = std::function<void(const stacks::Frame&, const program::SourceIndex&)>;

  /// Both must outlive this, and this its frames.
  UserFrames(stacks::PythonVisit& visit, SourceFiles& files) : visit_(visit), files_(files) {}

  /// Innermost first; their files are read.
  std::vector<UserFrame> read(const Comprehension& comprehension);
  /// Those of suspended generators that the loops of these frames go over, the nearest first.
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
