// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/closed_locks.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/python_locks.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/observed_values.h"
#include "collector/model/questions.h"
#include "collector/program/questions/entered_contexts.h"
#include "collector/program/questions/locks.h"

namespace ddpdoctor::detectors {
namespace {

bool waits_for_lock(const model::JobModel& job, const model::Thread& thread) {
  return waits_for_private_lock(job, thread) && lock_wanted_by(job, thread).has_value();
}

enum class Holds {
  kNone,
  kNamed,   // by a name of its own: other names are other locks
  kObjects  // of objects (`self.lock`, `shelf.opened()`): which one, the source does not show
};

/// Some `with` of the user around its lines entered an object, not the result of a call; or a
/// context of the user's in which the thread now waits for a lock, and had taken one before.
Holds holds_of(const model::JobModel& job, const model::Thread& thread) {
  Holds out = Holds::kNone;
  const model::Frame* const innermost = model::innermost_python(thread);
  for (const model::Frame* frame : model::user_frames(thread)) {
    const program::SourceText& lines = lines_of(job, frame->file);
    for (const std::string_view spelt : program::locks_held(lines, frame->line)) {
      if (!spelt.ends_with(')')) {
        const bool of_object = spelt.find('.') != spelt.npos;
        out = std::max(out, of_object ? Holds::kObjects : Holds::kNamed);
      }
    }
    const auto contexts = program::entered_around(lines, frame->line, job.sources);
    if (std::any_of(contexts.begin(), contexts.end(), [&](const program::FunctionLines& one) {
          return one.file == innermost->file && one.first <= innermost->line &&
                 innermost->line <= one.last;
        })) {
      out = Holds::kObjects;
    }
  }
  return out;
}

/// By the names in the source, both hold one lock: then they are not what they seem.
bool share_a_lock(const model::JobModel& job, const model::Thread& one,
                  const model::Thread& other) {
  const auto mine = locks_held_by(job, one);
  const auto theirs = locks_held_by(job, other);
  return std::any_of(mine.begin(), mine.end(),
                     [&theirs](const std::string& name) { return theirs.contains(name); });
}

}  // namespace

std::vector<const model::Thread*> closed_circle(const model::JobModel& job,
                                                const model::Process& process) {
  std::vector<const model::Thread*> out;
  if (!model::facts(job, model::kLockFact).empty()) {
    return out;  // memory shows which lock is which
  }
  for (const model::Thread& thread : process.threads) {
    const Holds holds = holds_of(job, thread);
    if (holds == Holds::kNone) {
      continue;
    }
    if (holds == Holds::kNamed || !waits_for_lock(job, thread)) {
      return {};
    }
    out.push_back(&thread);
  }
  return out.size() == 2 && !share_a_lock(job, *out[0], *out[1])
             ? out
             : std::vector<const model::Thread*>{};
}

}  // namespace ddpdoctor::detectors
