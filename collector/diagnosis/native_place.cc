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

/// The interpreter calls Python code, which is missing from the dump.
constexpr std::array<std::string_view, 4> kInterpreter = {"_PyEval_", "PyEval_", "PyObject_",
                                                          "_PyObject_"};

bool is_native(const model::Thread& thread) {
  return !thread.frames.empty() &&
         std::all_of(thread.frames.begin(), thread.frames.end(), [](const model::Frame& frame) {
           return frame.language == model::Language::kNative;
         });
}

/// Where the interpreter was built: "/build/python" if a function of it is in
/// /build/python/Python/ceval.c. Empty if no frame has the whole path of a source.
std::string_view interpreter_sources(const model::Thread& thread) {
  for (const model::Frame& frame : thread.frames) {
    const std::string_view file = frame.file;
    const std::string_view folder = file.substr(0, std::min(file.rfind('/'), file.size()));
    if (file.starts_with('/') && base::contains_any(frame.function, kInterpreter)) {
      return folder.substr(0, std::min(folder.rfind('/'), folder.size()));
    }
  }
  return {};
}

/// The innermost function that says what the thread waits for, before those of libraries one whose
/// source line is known and that the interpreter did not call; the innermost of all if none does.
const model::Frame* place_in_native(const model::Thread& thread) {
  const model::Frame* first = nullptr;
  const model::Frame* telling = nullptr;
  const std::string_view sources = interpreter_sources(thread);
  for (const model::Frame& frame : thread.frames) {
    if (frame.function.empty()) {
      continue;
    }
    const bool interpreter =
        model::is_interpreter_code(frame) || (!sources.empty() && frame.file.starts_with(sources));
    if (base::contains_any(frame.function, kInterpreter) || (interpreter && telling != nullptr)) {
      break;
    }
    first = first == nullptr ? &frame : first;
    if (model::says_why(frame) && !model::is_start_of_thread(frame)) {
      if (frame.line > 0 && frame.module.empty() && !interpreter) {
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
    finding.locations.push_back(detectors::location(
        model::call_site(*frame), {rank}, fmt::format("rank {} is here, in compiled code", rank)));
    finding.fix += fmt::format(
        " These stacks have no Python frames: run `py-spy dump --native --pid PID` or `pystack "
        "remote --native PID` to get the line of rank {}.",
        rank);
  }
}

}  // namespace ddpdoctor::diagnosis
