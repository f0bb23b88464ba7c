// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/python_locks.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/observed_values.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/locks.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::detectors {
namespace {

std::string spelled_in_full(const model::JobModel& job, const model::Frame& frame,
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

bool is_same_lock(const model::Fact& a, const model::Fact& b) {
  return a.pid == b.pid && a.number("lock") && a.number("lock") == b.number("lock");
}

/// Another lock of the process is called this, too.
bool is_shared_name(const std::vector<const model::Fact*>& all, const model::Fact& one) {
  return std::any_of(all.begin(), all.end(), [&one](const model::Fact* other) {
    return other->pid == one.pid && other->text("expression") == one.text("expression") &&
           !is_same_lock(*other, one);
  });
}

/// One name per lock object, whatever a line calls it: the first one that only this lock has, else
/// the name on the first line that was read.
std::string full_name(const model::JobModel& job, const model::Thread& thread,
                      const model::Frame& frame, const std::string& lock) {
  const auto all = model::facts(job, model::kLockFact);
  const auto here = std::find_if(all.begin(), all.end(), [&](const model::Fact* fact) {
    return fact->number("tid") == thread.tid && fact->number("line") == frame.line &&
           fact->text("file") == frame.file && fact->text("expression") == lock;
  });
  if (here == all.end()) {
    return spelled_in_full(job, frame, lock);
  }
  const auto own = std::find_if(all.begin(), all.end(), [&](const model::Fact* fact) {
    return is_same_lock(*fact, **here) && !is_shared_name(all, *fact);
  });
  if (own != all.end()) {
    return (*own)->text("expression").value_or(lock);
  }
  const auto first = std::find_if(all.begin(), all.end(), [here](const model::Fact* fact) {
    return is_same_lock(*fact, **here);
  });
  return fmt::format("{} (lock {})", (*first)->text("expression").value_or(lock),
                     static_cast<int>((*here)->number("lock").value_or(0)));
}

}  // namespace

std::optional<std::string> lock_wanted_by(const model::JobModel& job, const model::Thread& thread) {
  const model::Frame* at = innermost_python(thread);
  const auto spelt = wanted_lock(job, thread);
  return spelt && at != nullptr ? std::optional(full_name(job, thread, *at, *spelt)) : std::nullopt;
}

std::set<std::string> locks_held_by(const model::JobModel& job, const model::Thread& thread) {
  std::set<std::string> held;
  const auto wanted = lock_wanted_by(job, thread);
  const model::Frame* innermost = innermost_python(thread);
  for (const model::Frame* frame : model::user_frames(thread)) {
    for (const std::string& spelt : program::locks_held(lines_of(job, frame->file), frame->line)) {
      const std::string lock = full_name(job, thread, *frame, spelt);
      if (frame != innermost || lock != wanted) {
        held.insert(lock);
      }
    }
  }
  return held;
}

const model::Frame* frame_that_takes(const model::JobModel& job, const model::Thread& thread) {
  const auto frames = model::user_frames(thread);
  const model::Frame* at = frames.empty() ? nullptr : frames.front();
  for (std::size_t i = 1; i < frames.size(); ++i) {
    const std::string statement =
        program::statement_at(lines_of(job, frames[i]->file), frames[i]->line);
    if (!statement.starts_with("with ")) {
      break;
    }
    at = frames[i];
  }
  return at;
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
