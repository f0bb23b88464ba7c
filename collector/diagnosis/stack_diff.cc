// SPDX-License-Identifier: Apache-2.0
#include "collector/diagnosis/stack_diff.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "collector/graph/device_waits.h"
#include "collector/model/questions.h"

namespace ddpdoctor::diagnosis {
namespace {

using model::Frame;
using model::Language;

/// Native frames shown below the innermost Python line: enough for "gloo::barrier ← c10d::…", not a
/// whole C++ stack.
constexpr std::size_t kNativeNames = 4;

/// The interpreter's own calls and the glue code of bindings: every stack has them, and they say
/// nothing.
bool is_noise(const Frame& frame) {
  constexpr std::array<std::string_view, 11> kPrefixes = {"Py",
                                                          "_Py",
                                                          "cfunction_",
                                                          "method_vectorcall",
                                                          "vectorcall",
                                                          "object_vacall",
                                                          "slot_tp_",
                                                          "builtin___build_class__",
                                                          "pybind11::",
                                                          "std::",
                                                          "torch::autograd::THP"};
  return frame.function.empty() ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(), [&frame](std::string_view prefix) {
           return std::string_view(frame.function).starts_with(prefix);
         });
}

/// The stack without the frames that vary while a rank spins in its driver, but with the driver
/// function it called.
std::span<const Frame> down_to_driver(const std::vector<Frame>& frames) {
  const std::span<const Frame> all(frames);
  const std::span<const Frame> above = graph::above_driver(all);
  const std::size_t inside = all.size() - above.size();
  const bool named = inside > 0 && graph::is_driver_frame(all[inside - 1]) &&
                     !all[inside - 1].function.starts_with("0x");
  return named ? all.subspan(inside - 1) : above;
}

/// The frames of a stack that are compared, outermost first: its Python lines, then what the
/// innermost of them called.
std::vector<const Frame*> told_frames(const model::Thread& thread) {
  std::vector<const Frame*> inner;
  std::vector<const Frame*> python;
  for (const Frame& frame : down_to_driver(thread.frames)) {
    if (frame.language == Language::kPython) {
      python.push_back(&frame);
    } else if (python.empty() && inner.size() < kNativeNames && !is_noise(frame)) {
      inner.push_back(&frame);
    }
  }
  std::reverse(python.begin(), python.end());
  python.insert(python.end(), inner.rbegin(), inner.rend());
  return python;
}

bool same_place(const Frame& a, const Frame& b) {
  return a.language == b.language && a.line == b.line && a.function == b.function &&
         a.file == b.file && (a.language == Language::kPython || a.module == b.module);
}

/// The frame without what differs between processes, so that ranks of a node can share it.
Frame shared(const Frame& frame) {
  Frame out = frame;
  out.address = 0;
  out.locals.clear();
  return out;
}

void add(std::vector<StackNode>& roots, const std::vector<const Frame*>& frames, model::Rank rank) {
  std::vector<StackNode>* level = &roots;
  for (const Frame* frame : frames) {
    auto node = std::find_if(level->begin(), level->end(), [frame](const StackNode& candidate) {
      return same_place(candidate.frame, *frame);
    });
    if (node == level->end()) {
      level->push_back({.frame = shared(*frame), .ranks = {}, .children = {}});
      node = std::prev(level->end());
    }
    node->ranks.insert(rank);
    level = &node->children;
  }
}

}  // namespace

StackDiff stack_diff(const model::JobModel& job) {
  StackDiff diff;
  const model::Observation* now = model::latest(job);
  if (now == nullptr) {
    return diff;
  }
  std::vector<const model::Process*> ranks;
  for (const model::Process& process : now->processes) {
    if (process.role == model::Role::kRank && process.rank) {
      ranks.push_back(&process);
    }
  }
  std::stable_sort(
      ranks.begin(), ranks.end(),
      [](const model::Process* a, const model::Process* b) { return *a->rank < *b->rank; });
  for (const model::Process* process : ranks) {
    if (const model::Thread* thread = model::main_thread(*process)) {
      add(diff.roots, told_frames(*thread), *process->rank);
    }
  }
  return diff;
}

}  // namespace ddpdoctor::diagnosis
