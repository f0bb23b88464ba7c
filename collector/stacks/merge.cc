// SPDX-License-Identifier: Apache-2.0
// Merges two stacks. A native frame that is an evaluation loop runs a known run of Python frames
// and is replaced by it: up to 3.10 one frame, in 3.11 up to the frame marked as entry, from 3.12
// up to the entry shim. The shim (3.10 and 3.11: the CFrame) is a local variable of that loop, so
// its address identifies the native frame, whatever the symbols say.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "collector/stacks/python/reader.h"

namespace ddpdoctor::stacks {

namespace {

/// Consecutive Python frames run by one activation of the evaluation loop.
struct Run {
  std::vector<const Frame*> frames;
  RemoteAddress in_loop = 0;  // address of a local variable of that loop; 0 = unknown
};

std::vector<Run> runs_of(const std::vector<PythonFrame>& python) {
  std::vector<Run> runs;
  Run run;
  for (const PythonFrame& frame : python) {
    if (frame.raw.shim) {
      run.in_loop = frame.raw.address;
    } else {
      run.in_loop = frame.raw.loop;
      run.frames.push_back(&frame.frame);
    }
    if (frame.raw.shim || frame.raw.entry) {
      runs.push_back(std::move(run));
      run = {};
    }
  }
  if (!run.frames.empty()) {
    runs.push_back(std::move(run));
  }
  return runs;
}

/// "_PyEval_EvalFrameDefault", also split or cloned by the compiler (".cold", ".constprop.0",
/// ".lto_priv.0").
bool is_named(std::string_view function, std::string_view name) {
  return function.starts_with(name) &&
         (function.size() == name.size() || function[name.size()] == '.' ||
          function[name.size()] == ' ' || function[name.size()] == '[');
}

std::vector<std::size_t> loops_by_name(const std::vector<NativeFrame>& native,
                                       std::string_view name) {
  std::vector<std::size_t> loops;
  for (std::size_t i = 0; i < native.size(); ++i) {
    if (is_named(native[i].frame.function, name)) {
      loops.push_back(i);
    }
  }
  return loops;
}

std::vector<std::size_t> loops_by_name(const std::vector<NativeFrame>& native) {
  auto loops = loops_by_name(native, "_PyEval_EvalFrameDefault");
  // If a build gives the loop no symbol of its own, this entry still exists before 3.11.
  return loops.empty() ? loops_by_name(native, "PyEval_EvalFrameEx") : loops;
}

/// The native frame whose part of the stack contains `address`.
std::optional<std::size_t> frame_holding(const std::vector<NativeFrame>& native,
                                         RemoteAddress stack_pointer, RemoteAddress address) {
  RemoteAddress low = stack_pointer;
  for (std::size_t i = 0; i < native.size(); ++i) {
    const RemoteAddress high = native[i].cfa;
    if (high == 0 || low == 0) {
      return std::nullopt;
    }
    if (low <= address && address < high) {
      return i;
    }
    low = high;
  }
  return std::nullopt;
}

/// Pairs of a native frame and its run, in stack order; nothing if they do not match.
using Pairing = std::vector<std::pair<std::size_t, const Run*>>;

std::optional<Pairing> pair_by_address(const std::vector<NativeFrame>& native,
                                       RemoteAddress stack_pointer, const std::vector<Run>& runs) {
  Pairing pairing;
  for (const Run& run : runs) {
    const auto loop =
        run.in_loop != 0 ? frame_holding(native, stack_pointer, run.in_loop) : std::nullopt;
    if (loop && (pairing.empty() || pairing.back().first < *loop)) {
      pairing.emplace_back(*loop, &run);
    } else if (!run.frames.empty()) {
      return std::nullopt;  // an empty run is a sentinel (3.15); all others must match
    }
  }
  return pairing;
}

std::optional<Pairing> pair_by_count(const std::vector<NativeFrame>& native,
                                     const std::vector<Run>& runs) {
  const auto loops = loops_by_name(native);
  if (loops.size() != runs.size()) {
    return std::nullopt;
  }
  Pairing pairing;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    pairing.emplace_back(loops[i], &runs[i]);
  }
  return pairing;
}

void append_python(std::vector<Frame>& merged, const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    for (const Frame* frame : run.frames) {
      merged.push_back(*frame);
    }
  }
}

}  // namespace

std::vector<Frame> merge(const std::vector<NativeFrame>& native, RemoteAddress stack_pointer,
                         const std::vector<PythonFrame>& python, const std::string& version,
                         std::string& problem) {
  const std::vector<Run> runs = runs_of(python);
  const bool has_shims =
      std::ranges::any_of(python, [](const PythonFrame& frame) { return frame.raw.shim; });
  std::vector<Frame> merged;
  if (native.empty()) {
    append_python(merged, runs);
    return merged;
  }
  auto pairing = pair_by_address(native, stack_pointer, runs);
  if (!pairing && !has_shims) {
    pairing = pair_by_count(native, runs);
  }
  if (!pairing) {
    append_python(merged, runs);
    problem = fmt::format(
        "Python {} and native frames do not fit together ({} and {} entries of the evaluation "
        "loop), shown one after the other",
        version, runs.size(), loops_by_name(native).size());
  }
  auto next = pairing ? pairing->cbegin() : Pairing::const_iterator{};
  for (std::size_t i = 0; i < native.size(); ++i) {
    if (!pairing || next == pairing->end() || next->first != i) {
      merged.push_back(native[i].frame);
      continue;
    }
    for (const Frame* frame : next->second->frames) {
      merged.push_back(*frame);
    }
    ++next;
  }
  return merged;
}

}  // namespace ddpdoctor::stacks
