// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/backends.h"

#include <algorithm>
#include <set>
#include <string>

#include "collector/model/questions.h"
#include "collector/program/origin/definitions.h"

namespace ddpdoctor::model {
namespace {

/// `torch.distributed.Backend.register_backend(name, make)`.
bool registers_backend(const program::SourceText& lines) {
  const program::FileFacts& facts = program::facts_of(lines);
  return facts.calls.contains("register_backend") &&
         std::any_of(facts.imports.begin(), facts.imports.end(),
                     [](const auto& one) { return one.second.starts_with("torch.distributed"); });
}

void mark_thread(Thread& thread, const std::set<std::string>& files) {
  bool called = false;  // called by the program, outside the frame
  for (auto frame = thread.frames.rbegin(); frame != thread.frames.rend(); ++frame) {
    const bool user = frame->language == Language::kPython && is_user_file(frame->file);
    if (user && files.contains(frame->file)) {
      frame->of_backend = called;
    } else {
      called = called || user;
    }
  }
}

}  // namespace

void mark_backends(JobModel& job) {
  std::set<std::string> files;
  for (const auto& [file, lines] : job.sources) {
    if (is_user_file(file) && registers_backend(lines)) {
      files.insert(file);
    }
  }
  for (Observation& observation : job.observations) {
    for (Process& process : observation.processes) {
      for (Thread& thread : process.threads) {
        if (!files.empty()) {
          mark_thread(thread, files);
        }
      }
    }
  }
}

}  // namespace ddpdoctor::model
