// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/signal_handlers.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/program/questions/expressions.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::detectors {
namespace {

/// True if `name` occurs in a call of signal.signal() anywhere in the sources.
bool handles_a_signal(const model::JobModel& job, std::string_view name) {
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, line] : lines) {
      if (line.find("signal.signal") == std::string::npos) {
        continue;
      }
      for (const program::Call& call : program::calls_in(line)) {
        const std::string_view text =
            std::string_view(line).substr(call.begin, call.end - call.begin);
        const auto words = call.callee == "signal.signal" ? program::words_in(text)
                                                          : std::vector<std::string_view>{};
        if (std::any_of(words.begin(), words.end(), [name](std::string_view word) {
              return program::last_name(word) == name;
            })) {
          return true;
        }
      }
    }
  }
  return false;
}

bool calls(const model::JobModel& job, const model::Frame& frame, std::string_view name) {
  const program::SourceText& lines = lines_of(job, frame.file);
  const auto line = lines.find(frame.line);
  if (line == lines.end()) {
    return true;  // unknown, so it may
  }
  const auto all = program::calls_in(line->second);
  return std::any_of(all.begin(), all.end(), [name](const program::Call& call) {
    return program::last_name(call.callee) == name;
  });
}

}  // namespace

std::optional<Interruption> interruption(const model::JobModel& job, const model::Thread& thread) {
  const std::vector<const model::Frame*> frames = model::user_frames(thread);
  for (std::size_t i = 0; i + 1 < frames.size(); ++i) {
    const std::string_view name = program::last_name(frames[i]->function);
    if (frames[i]->function == frames[i + 1]->function) {
      continue;  // a timer that restarts itself in its own handler
    }
    if (!name.empty() && !calls(job, *frames[i + 1], name) && handles_a_signal(job, name)) {
      return Interruption{.handler = frames[i], .interrupted = frames[i + 1]};
    }
  }
  return std::nullopt;
}

bool is_signal_handler(const model::JobModel& job, const model::Frame& frame) {
  const std::string_view name = program::last_name(frame.function);
  return !name.empty() && handles_a_signal(job, name);
}

void tell_interruption(const std::vector<Suspect>& waiting, const Interruption& signal,
                       Finding& finding) {
  const model::CallSite interrupted = model::call_site(*signal.interrupted);
  finding.summary = fmt::format(
      "a signal handler of {} waits ({}) for a lock that is held by the code it interrupted "
      "({}){}",
      who(waiting), place(waiting.front().place), place(interrupted), and_who_waits(finding));
  finding.locations.insert(
      finding.locations.begin() + std::min<std::ptrdiff_t>(1, std::ssize(finding.locations)),
      location(interrupted, finding.culprits,
               "the signal interrupted this line, which held the lock"));
  finding.fix =
      "Set only a flag in the handler, and do its work in the loop or in a separate thread: a "
      "handler runs between any two lines.";
}

}  // namespace ddpdoctor::detectors
