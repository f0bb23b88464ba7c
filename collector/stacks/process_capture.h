// SPDX-License-Identifier: Apache-2.0
// Captures one process: first what races with it (look), afterwards names and Python text (finish).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "collector/stacks/native/source_lines.h"
#include "collector/stacks/native/symbols.h"
#include "collector/stacks/python_visit.h"
#include "collector/stacks/target/family_pages.h"
#include "collector/stacks/thread_capture.h"

namespace ddpdoctor::stacks {

/// Capture of one process in two steps.
class ProcessCapture {
 public:
  ProcessCapture(pid_t pid, const CaptureOptions& options) : options_(options) {
    result_.pid = pid;
  }

  /// Reads every thread, each at one instant.
  void look(ElfCache& files);
  /// Registers the addresses of its native frames.
  void want_names(FunctionNames& names);
  /// Resolves names, merges and returns the stacks.
  ProcessStacks finish(const FunctionNames& names, FamilyPages& family);

 private:
  bool open(ElfCache& files);
  void look_at_new_threads(ThreadCapture& capture);
  void list_without_stacks();
  void describe_python();
  void name_threads(const FunctionNames& names);
  [[nodiscard]] std::vector<NativeFrame> native_frames(const CapturedThread& thread,
                                                       const FunctionNames& names);
  void assemble(CapturedThread& thread, const FunctionNames& names);
  void add_awaiting(CapturedThread& thread);
  void visit();
  void find_mutex(CapturedThread& thread, const std::vector<NativeFrame>& native) const;
  void describe_gil(std::optional<pid_t> before);
  [[nodiscard]] std::optional<pid_t> outer_tid(pid_t inner) const;
  [[nodiscard]] bool late() const;

  CaptureOptions options_;
  std::chrono::steady_clock::time_point deadline_;
  ProcessStacks result_;
  std::optional<ProcTasks> tasks_;
  std::unique_ptr<LiveTarget> target_;
  std::unique_ptr<PythonReader> python_;
  std::string python_problem_;
  std::vector<CapturedThread> threads_;
  std::vector<PythonVisit::Thread> decoded_;  // for the visitor
  SourceLines lines_;
};

}  // namespace ddpdoctor::stacks
