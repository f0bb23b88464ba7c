// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/python_locks.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/observed_values.h"
#include "collector/model/questions.h"
#include "collector/program/questions/expressions.h"
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

using Facts = std::vector<const model::Fact*>;

/// One name per lock object, whatever a line calls it: the first one that only this lock has, else
/// the name on the first line that was read.
std::string name_of(const Facts& all, const model::Fact& lock) {
  const auto own = std::find_if(all.begin(), all.end(), [&](const model::Fact* fact) {
    return is_same_lock(*fact, lock) && !is_shared_name(all, *fact);
  });
  if (own != all.end()) {
    return (*own)->text("expression").value_or("");
  }
  const auto first = std::find_if(all.begin(), all.end(), [&lock](const model::Fact* fact) {
    return is_same_lock(*fact, lock);
  });
  return fmt::format("{} (lock {})", (*first)->text("expression").value_or(""),
                     static_cast<int>(lock.number("lock").value_or(0)));
}

/// A lock on a line of a thread: its name, and its owner where memory shows that (0: no thread).
struct Named {
  std::string name;
  std::optional<pid_t> owner;

  [[nodiscard]] bool is_of_another(const model::Thread& thread) const {
    return owner && *owner != thread.tid;
  }
};

std::optional<pid_t> owner_in(const model::Fact& lock) {
  const auto owner = lock.number("owner");
  return owner ? std::optional(static_cast<pid_t>(*owner)) : std::nullopt;
}

/// The locks behind an expression of a line; several for an ExitStack.
std::vector<Named> all_named(const model::JobModel& job, const Facts& all,
                             const model::Thread& thread, const model::Frame& frame,
                             const std::string& lock) {
  std::vector<Named> out;
  for (const model::Fact* fact : all) {
    if (fact->number("tid") == thread.tid && fact->number("line") == frame.line &&
        fact->text("file") == frame.file && fact->text("expression") == lock) {
      out.push_back({.name = name_of(all, *fact), .owner = owner_in(*fact)});
    }
  }
  if (out.empty()) {
    out.push_back({.name = spelled_in_full(job, frame, lock), .owner = {}});
  }
  return out;
}

Named lock_named(const model::JobModel& job, const Facts& all, const model::Thread& thread,
                 const model::Frame& frame, const std::string& lock) {
  return all_named(job, all, thread, frame, lock).front();
}

/// What the lines of the stack have entered, and what its innermost line takes before `wanted`;
/// without the lock that it waits for there.
std::set<std::string> entered(const model::JobModel& job, const Facts& all,
                              const model::Thread& thread, std::string_view wanted) {
  std::set<std::string> out;
  const model::Frame* const at = innermost_python(thread);
  const std::string waits_for =
      wanted.empty() ? std::string() : lock_named(job, all, thread, *at, std::string(wanted)).name;
  const auto add = [&](const model::Frame& frame, const std::string& spelt) {
    for (const Named& lock : all_named(job, all, thread, frame, spelt)) {
      if (!lock.is_of_another(thread) && (&frame != at || lock.name != waits_for)) {
        out.insert(lock.name);
      }
    }
  };
  for (const model::Frame* frame : model::user_frames(thread)) {
    for (const std::string& spelt : program::locks_held(lines_of(job, frame->file), frame->line)) {
      add(*frame, spelt);
    }
  }
  for (const std::string& spelt : wanted_locks(job, thread)) {
    if (spelt == wanted) {
      break;
    }
    add(*at, spelt);
  }
  return out;
}

/// Another thread of the process may have the lock: it entered it, or took it on its line before
/// one that it waits for.
bool others_may_have(const model::JobModel& job, const Facts& all, const model::Thread& thread,
                     const std::string& lock) {
  for (const model::Process* process : processes(job)) {
    const auto& threads = process->threads;
    const bool own = std::any_of(threads.begin(), threads.end(),
                                 [&thread](const auto& one) { return &one == &thread; });
    const bool found =
        own && std::any_of(threads.begin(), threads.end(), [&](const auto& one) {
          const auto takes = wanted_locks(job, one);
          return &one != &thread &&
                 entered(job, all, one, takes.empty() ? "" : takes.back()).contains(lock);
        });
    if (found) {
      return true;
    }
  }
  return false;
}

/// Of `with a, b:` the first lock that the thread does not have: a lock that no other thread can
/// have is its own. Empty for a line that takes no lock.
std::string spelling_of_wanted(const model::JobModel& job, const Facts& all,
                               const model::Thread& thread) {
  const model::Frame* const at = innermost_python(thread);
  const auto takes = wanted_locks(job, thread);
  for (const std::string& spelt : takes) {
    if (takes.size() == 1) {
      break;
    }
    const Named lock = lock_named(job, all, thread, *at, spelt);
    if (lock.owner ? *lock.owner != thread.tid : others_may_have(job, all, thread, lock.name)) {
      return spelt;
    }
  }
  return takes.empty() ? std::string() : takes.back();
}

}  // namespace

std::optional<std::string> lock_wanted_by(const model::JobModel& job, const model::Thread& thread) {
  const auto all = model::facts(job, model::kLockFact);
  const std::string spelt = spelling_of_wanted(job, all, thread);
  return spelt.empty()
             ? std::nullopt
             : std::optional(lock_named(job, all, thread, *innermost_python(thread), spelt).name);
}

std::set<std::string> locks_held_by(const model::JobModel& job, const model::Thread& thread) {
  const auto all = model::facts(job, model::kLockFact);
  std::set<std::string> held = entered(job, all, thread, spelling_of_wanted(job, all, thread));
  for (const model::Fact* fact : all) {
    if (owner_in(*fact) == thread.tid && thread.tid != 0) {
      held.insert(name_of(all, *fact));
    }
  }
  return held;
}

const model::Frame* frame_that_takes(const model::JobModel& job, const model::Thread& thread) {
  const auto frames = model::user_frames(thread);
  const model::Frame* at = frames.empty() ? nullptr : frames.front();
  // `__enter__` and what it calls are code of the context: its caller takes the lock.
  const auto enter = std::find_if(frames.begin(), frames.end(), [](const model::Frame* frame) {
    return program::last_name(frame->function) == "__enter__";
  });
  const auto outer = enter == frames.end() ? frames.end() : std::next(enter);
  at = outer == frames.end() ? at : *outer;
  for (auto i = static_cast<std::size_t>(outer == frames.end() ? 1 : outer - frames.begin() + 1);
       i < frames.size(); ++i) {
    if (!program::enters_contexts(lines_of(job, frames[i]->file), frames[i]->line)) {
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
