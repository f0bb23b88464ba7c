// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/where_interrupted.h"

#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"
#include "collector/model/told_by_logs.h"
#include "collector/program/libraries/libraries.h"

namespace ddpdoctor::detectors {
namespace {

bool enters_context(const model::Frame& frame) {
  return frame.function == "__enter__" && frame.file.ends_with("contextlib.py");
}

/// The innermost Python frame; of a context that is entered, the line that enters it.
const model::Frame* place_of(const model::Thread& thread, bool& enters) {
  for (const model::Frame& frame : thread.frames) {
    if (frame.language != model::Language::kPython) {
      continue;
    }
    if (!enters_context(frame)) {
      return &frame;
    }
    enters = true;
  }
  return nullptr;
}

/// "main_process_first" in "with self.state.main_process_first():"; empty for contexts in which no
/// rank goes first.
std::string_view zero_first_in(std::string_view line) {
  line = base::trim(line);
  if (!line.starts_with("with ")) {
    return {};
  }
  for (std::size_t open = line.find('('); open != line.npos; open = line.find('(', open + 1)) {
    const std::string_view before = line.substr(0, open);
    const std::string_view name = before.substr(before.find_last_of(" .,(") + 1);
    if (program::lets_main_first(name)) {
      return name;
    }
  }
  return {};
}

struct Interrupted {
  std::size_t count = 0;
  std::string_view first;  // the context in which one goes first
};

std::string processes_at(std::size_t count) {
  return count == 1 ? "a process was" : fmt::format("{} processes were", count);
}

}  // namespace

std::optional<Finding> where_interrupted(const graph::Examination& examination) {
  constexpr std::size_t kMostNamedPlaces = 3;
  std::map<model::CallSite, Interrupted> places;
  for (const model::Process* process : processes(examination.job)) {
    const model::Thread* main = model::main_thread(*process);
    if (main == nullptr || main->frames.empty()) {
      continue;
    }
    bool enters = false;
    const model::Frame* at = place_of(*main, enters);
    if (!main->capture.ends_with(model::kOfInterrupt) || at == nullptr) {
      return std::nullopt;
    }
    Interrupted& there = places[model::call_site(*at)];
    ++there.count;
    const auto line = model::source_line(examination.job, at->file, at->line);
    there.first = enters && line ? zero_first_in(*line) : there.first;
  }
  if (places.empty()) {
    return std::nullopt;
  }
  Finding finding;
  finding.kind = "undetermined";
  finding.confidence = Confidence::kPossible;
  std::string words;
  bool lets_first = false;
  for (const auto& [site, there] : places) {
    lets_first = lets_first || !there.first.empty();
    finding.locations.push_back(location(site, {}, processes_at(there.count) + " here"));
    if (finding.locations.size() <= kMostNamedPlaces) {
      words += fmt::format(
          "{}{} at {}{}", words.empty() ? "" : ", ", processes_at(there.count), line_of(site),
          there.first.empty() ? std::string()
                              : fmt::format(", waiting in {} for the rank that goes first",
                                            base::printable(there.first)));
    }
  }
  finding.summary = fmt::format("a person pressed Ctrl-C: {}", words);
  finding.evidence.push_back({.rank = {}, .text = "log: KeyboardInterrupt"});
  finding.fix = lets_first ? "Wait for local rank 0 and its work before this line, or prepare it "
                             "(caches) before the "
                             "job; run `ddpdoctor attach PID` during the wait if it does not end."
                           : "While the job hangs, run `ddpdoctor attach PID`: it reads the stacks "
                             "of all processes.";
  return finding;
}

}  // namespace ddpdoctor::detectors
