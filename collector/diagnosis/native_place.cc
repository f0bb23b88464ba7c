// SPDX-License-Identifier: Apache-2.0
#include "collector/diagnosis/native_place.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/native_code.h"
#include "collector/model/python_waits.h"
#include "collector/model/questions.h"

namespace ddpdoctor::diagnosis {
namespace {

/// Functions that wait, whatever they wait for; their caller is more informative.
constexpr std::array<std::string_view, 14> kWaits = {
    "futex",     "pthread_cond", "condition_variable", "lll_lock_wait",
    "syscall",   "clone",        "pthread_clockjoin",  "start_thread",
    "nanosleep", "epoll_wait",   "__libc_start_c",     "__pselect",
    "__GI___",   "_start"};

/// The interpreter's own frames: the Python code below them is missing from the dump.
constexpr std::array<std::string_view, 4> kInterpreter = {"_PyEval_", "PyEval_", "PyObject_",
                                                          "_PyObject_"};

bool is_native(const model::Thread& thread) {
  return !thread.frames.empty() &&
         std::all_of(thread.frames.begin(), thread.frames.end(), [](const model::Frame& frame) {
           return frame.language == model::Language::kNative;
         });
}

/// The innermost function that says what the thread waits for, before those of libraries one whose
/// source line is known; the innermost of all if none does.
const model::Frame* place_in_native(const model::Thread& thread) {
  const model::Frame* first = nullptr;
  const model::Frame* telling = nullptr;
  for (const model::Frame& frame : thread.frames) {
    if (frame.function.empty()) {
      continue;
    }
    if (base::contains_any(frame.function, kInterpreter)) {
      break;
    }
    first = first == nullptr ? &frame : first;
    if (!base::contains_any(frame.function, kWaits)) {
      if (frame.line > 0 && frame.module.empty() && !model::is_libc_code(frame) &&
          !model::is_interpreter_code(frame)) {
        return &frame;
      }
      telling = telling == nullptr ? &frame : telling;
    }
  }
  return telling == nullptr ? first : telling;
}

/// The innermost Python function that is not one of threading.
const model::Frame* python_frame_of(const graph::Examination& examination, model::Rank rank) {
  const graph::Standing* standing = examination.standing(rank);
  if (standing == nullptr || standing->thread == nullptr || standing->user.known()) {
    return nullptr;
  }
  const auto& frames = standing->thread->frames;
  const auto found = std::find_if(frames.begin(), frames.end(), [](const model::Frame& frame) {
    return frame.language == model::Language::kPython &&
           !model::is_of_threading(model::python_wait(frame));
  });
  return found == frames.end() ? nullptr : &*found;
}

const model::Frame* place_of(const graph::Examination& examination, model::Rank rank) {
  const graph::Standing* standing = examination.standing(rank);
  const bool native = standing != nullptr && standing->thread != nullptr &&
                      !standing->user.known() && is_native(*standing->thread);
  return native ? place_in_native(*standing->thread) : nullptr;
}

}  // namespace

void tell_native_places(std::vector<Judged>& findings, const graph::Examination& examination) {
  for (Judged& judged : findings) {
    detectors::Finding& finding = judged.finding;
    if (!finding.locations.empty() || finding.culprits.empty()) {
      continue;
    }
    const model::Rank rank = finding.culprits.front();
    const graph::Standing* standing = examination.standing(rank);
    if (standing != nullptr && standing->thread != nullptr && standing->user.known()) {
      finding.locations.push_back(
          detectors::location(standing->user, {rank}, fmt::format("rank {} is here", rank)));
      continue;
    }
    if (const model::Frame* python = python_frame_of(examination, rank)) {
      finding.locations.push_back(detectors::location(model::call_site(*python), {rank},
                                                      fmt::format("rank {} is here", rank)));
      continue;
    }
    const model::Frame* frame = place_of(examination, rank);
    if (frame == nullptr) {
      continue;
    }
    finding.locations.push_back({.rank = rank,
                                 .ranks = {},
                                 .file = frame->file,
                                 .line = frame->line,
                                 .function = frame->function,
                                 .note = fmt::format("rank {} is here, in compiled code", rank)});
    finding.fix += fmt::format(
        " These stacks have no Python frames: run `py-spy dump --native --pid PID` or `pystack "
        "remote --native PID` to get the line of rank {}.",
        rank);
  }
}

}  // namespace ddpdoctor::diagnosis
