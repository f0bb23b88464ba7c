// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/python_locks.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/program/questions/locks.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::detectors {
namespace {

std::string full_name(const model::JobModel& job, const model::Frame& frame,
                      const std::string& lock) {
  constexpr std::string_view kSelf = "self.";
  if (lock.starts_with(kSelf)) {
    const std::size_t dot = frame.function.rfind('.');
    return dot == std::string::npos ? lock
                                    : frame.function.substr(0, dot + 1) + lock.substr(kSelf.size());
  }
  const program::SourceText& lines = lines_of(job, frame.file);
  const bool own = std::any_of(lines.begin(), lines.end(), [&lock](const auto& line) {
    return line.second.starts_with(lock + " =") || line.second.starts_with(lock + ":");
  });
  return own ? fmt::format("{} of {}", lock, base::file_name(frame.file)) : lock;
}

}  // namespace

std::optional<std::string> lock_wanted_by(const model::JobModel& job, const model::Thread& thread) {
  const model::Frame* at = innermost_python(thread);
  const auto spelt = wanted_lock(job, thread);
  return spelt && at != nullptr ? std::optional(full_name(job, *at, *spelt)) : std::nullopt;
}

std::set<std::string> locks_held_by(const model::JobModel& job, const model::Thread& thread) {
  std::set<std::string> held;
  const auto wanted = lock_wanted_by(job, thread);
  const model::Frame* innermost = innermost_python(thread);
  for (const model::Frame* frame : model::user_frames(thread)) {
    for (const std::string& spelt : program::locks_held(lines_of(job, frame->file), frame->line)) {
      const std::string lock = full_name(job, *frame, spelt);
      if (frame != innermost || lock != wanted) {
        held.insert(lock);
      }
    }
  }
  return held;
}

const model::Thread* holder_of_wanted_lock(const model::JobModel& job,
                                           const model::Process& process,
                                           const model::Thread& waiter) {
  const auto wanted = lock_wanted_by(job, waiter);
  if (!wanted) {
    return nullptr;
  }
  const auto found =
      std::find_if(process.threads.begin(), process.threads.end(), [&](const auto& one) {
        return &one != &waiter && locks_held_by(job, one).contains(*wanted);
      });
  return found == process.threads.end() ? nullptr : &*found;
}

}  // namespace ddpdoctor::detectors
