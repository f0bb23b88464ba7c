// SPDX-License-Identifier: Apache-2.0
// lock-deadlock: threads of one process each hold a lock that the next one waits for. The thread
// that feeds or trains never continues, and the other ranks wait for its rank.
#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/closed_locks.h"
#include "collector/detectors/evidence/library_deadlocks.h"
#include "collector/detectors/evidence/native_deadlocks.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/python_locks.h"
#include "collector/detectors/evidence/rpc_circle.h"
#include "collector/detectors/evidence/signal_handlers.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wait_under_lock.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::lock_deadlock {
namespace {

constexpr std::string_view kKind = "lock-deadlock";
constexpr std::size_t kLongestPath = 60;

/// A thread blocked in a lock: the lock it waits for, and those that it already holds according to
/// the source.
struct Blocked {
  const model::Thread* thread = nullptr;
  std::string wanted;
  std::set<std::string> held;
};

std::vector<Blocked> blocked_threads(const model::JobModel& job, const model::Process& process) {
  std::vector<Blocked> out;
  for (const model::Thread& thread : process.threads) {
    const auto wanted = lock_wanted_by(job, thread);
    if (wanted && waits_for_private_lock(job, thread)) {
      out.push_back({.thread = &thread, .wanted = *wanted, .held = locks_held_by(job, thread)});
    }
  }
  return out;
}

/// Follows "waits for what the next one holds" from `start` until the cycle closes; empty if it
/// does not.
std::vector<const Blocked*> circle_from(const std::vector<Blocked>& all, const Blocked& start) {
  std::vector<const Blocked*> path = {&start};
  while (path.size() <= all.size()) {
    const auto holds = [&path](const Blocked& other) {
      return other.held.contains(path.back()->wanted);
    };
    // Prefers another thread to the thread itself, because two objects of one class have locks with
    // the same name.
    auto next = std::find_if(all.begin(), all.end(), [&](const Blocked& other) {
      return &other != path.back() && holds(other);
    });
    next = next == all.end() ? std::find_if(all.begin(), all.end(), holds) : next;
    if (next == all.end()) {
      return {};
    }
    if (&*next == &start) {
      return path;
    }
    path.push_back(&*next);
  }
  return {};
}

Suspect member(const graph::Examination& examination, const model::Process& process,
               const model::Thread& thread, std::string text, Confidence confidence) {
  Suspect suspect = suspect_in(examination, process, &thread);
  suspect.confidence = confidence;
  const bool main = process.rank && &thread == model::main_thread(process);
  suspect.note = fmt::format(
      "{} {}", main ? fmt::format("rank {}", *process.rank) : thread_name(thread), text);
  suspect.evidence =
      fmt::format("{} of process {} {}", full_thread_name(thread), process.pid, text);
  return suspect;
}

/// Only an RLock has an owner field; for other Python locks the source shows the owner.
std::vector<Suspect> circle_by_source(const graph::Examination& examination,
                                      const model::Process& process) {
  const auto sure = stuck(examination);
  if (!sure) {
    return {};
  }
  const std::vector<Blocked> blocked = blocked_threads(examination.job, process);
  for (const Blocked& start : blocked) {
    const auto circle = circle_from(blocked, start);
    std::vector<Suspect> out;
    for (std::size_t i = 0; i < circle.size(); ++i) {
      // If only one thread is in the cycle, the two locks with the same name could still be
      // different objects.
      const bool proven = *sure == Confidence::kLikely && circle.size() > 1;
      out.push_back(member(examination, process, *circle[i]->thread,
                           fmt::format("wants {} and holds {}", circle[i]->wanted,
                                       circle[(i + circle.size() - 1) % circle.size()]->wanted),
                           proven ? Confidence::kCertain : *sure));
      if (const auto* frame = frame_that_takes(examination.job, *circle[i]->thread)) {
        out.back().place = model::call_site(*frame);
      }
    }
    if (!out.empty()) {
      return out;
    }
  }
  std::vector<Suspect> out;
  for (const model::Thread* thread : closed_circle(examination.job, process)) {
    out.push_back(member(examination, process, *thread, "holds a lock and wants another",
                         Confidence::kPossible));
    if (const auto* frame = frame_that_takes(examination.job, *thread)) {
      out.back().place = model::call_site(*frame);
    }
  }
  return out;
}

/// A node of the wait-for graph as a thread of this job.
std::pair<const model::Process*, const model::Thread*> thread_of(const model::JobModel& job,
                                                                 const std::string& node) {
  for (const model::Process* process : processes(job)) {
    for (const model::Thread& thread : process->threads) {
      const bool is_main = &thread == model::main_thread(*process);
      if (node == fmt::format("thread:{}", thread.tid) ||
          (is_main && (node == fmt::format("pid:{}", process->pid) ||
                       (process->role == model::Role::kRank && process->rank &&
                        node == fmt::format("rank:{}", *process->rank))))) {
        return {process, &thread};
      }
    }
  }
  return {nullptr, nullptr};
}

/// Every edge of the cycle is a mutex with a known owner: this is a proof.
std::vector<Suspect> circle_by_owner(const graph::Examination& examination,
                                     const std::vector<std::string>& cycle) {
  std::vector<Suspect> out;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const std::string& next = cycle[(i + 1) % cycle.size()];
    const auto edges = examination.waits.from(cycle[i]);
    const bool by_mutex = std::any_of(edges.begin(), edges.end(), [&next](const graph::Edge* edge) {
      return edge->to == next && edge->kind == graph::EdgeKind::kMutex;
    });
    const auto [process, thread] = thread_of(examination.job, cycle[i]);
    if (!by_mutex || thread == nullptr) {
      return {};
    }
    out.push_back(member(examination, *process, *thread,
                         fmt::format("waits for a mutex that {} holds", next),
                         Confidence::kCertain));
  }
  return out;
}

/// "the file lock /cache/vocab.lock" for the edge "lock-file /cache/vocab.lock".
std::string lock_name(std::string_view why) {
  constexpr std::string_view kKinds[] = {"lock-file ", "file-lock "};
  for (const std::string_view kind : kKinds) {
    if (why.starts_with(kind) && why.size() > kind.size()) {
      return fmt::format("the file lock {}", base::elide(why.substr(kind.size()), kLongestPath));
    }
  }
  return why.starts_with("the ") ? std::string(why) : "a file lock";
}

/// One rank waits for a lock that another one holds, and that one waits in a collective for the
/// first: a cycle over processes. The rank in the collective comes last.
std::vector<Suspect> circle_over_ranks(const graph::Examination& examination,
                                       const std::vector<std::string>& cycle) {
  std::vector<Suspect> out;
  bool by_lock = false;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const std::string& next = cycle[(i + 1) % cycle.size()];
    const auto edges = examination.waits.from(cycle[i]);
    const auto edge = std::find_if(edges.begin(), edges.end(), [&next](const graph::Edge* one) {
      return one->to == next &&
             (one->kind == graph::EdgeKind::kFileLock || one->kind == graph::EdgeKind::kCollective);
    });
    const auto [process, thread] = thread_of(examination.job, cycle[i]);
    if (edge == edges.end() || thread == nullptr || !process->rank) {
      return {};
    }
    const bool lock = (*edge)->kind == graph::EdgeKind::kFileLock;
    by_lock = by_lock || lock;
    Suspect suspect = member(examination, *process, *thread,
                             lock ? fmt::format("waits for {}", lock_name((*edge)->why))
                                  : "holds it and waits for the others in a collective",
                             Confidence::kCertain);
    out.insert(lock ? out.begin() : out.end(), std::move(suspect));
  }
  return by_lock ? out : std::vector<Suspect>{};
}

bool in_collective(const graph::Examination& examination, const std::vector<Suspect>& circle) {
  return std::any_of(circle.begin(), circle.end(), [&examination](const Suspect& one) {
    const graph::Standing* standing = one.rank ? examination.standing(*one.rank) : nullptr;
    return standing == nullptr || standing->waits_for_ranks();
  });
}

Finding locked_in_collective(const graph::Examination& examination,
                             const std::vector<Suspect>& circle) {
  Finding finding = accuse(examination, kKind, circle);
  if (!in_collective(examination, circle)) {
    finding.summary =
        fmt::format("{} wait for each other's file locks ({} and {})", said(finding.culprits),
                    place(circle.front().place), place(circle.back().place));
    finding.fix =
        "Take these file locks in the same order on every rank, or use one lock for both.";
    return finding;
  }
  const Suspect& holder = circle.back();
  model::RankSet without = finding.culprits;
  without.erase(*holder.rank);
  finding.summary = fmt::format(
      "{} wait{} for a file lock ({}); rank {} holds it and waits for {} in a collective ({})",
      said(without), without.size() == 1 ? "s" : "", place(circle.front().place), *holder.rank,
      without.size() == 1 ? "that rank" : "those ranks", place(holder.place));
  finding.fix =
      "Release the lock before the collective, because the collective needs the ranks that wait "
      "for the lock.";
  return finding;
}

/// Cycles that share a holder are one deadlock.
void add_circle(std::vector<std::vector<Suspect>>& all, std::vector<Suspect> circle,
                const graph::Examination& examination) {
  const auto same = std::find_if(all.begin(), all.end(), [&](const std::vector<Suspect>& known) {
    return known.back().rank == circle.back().rank && in_collective(examination, known) &&
           in_collective(examination, circle);
  });
  if (same == all.end()) {
    all.push_back(std::move(circle));
    return;
  }
  circle.pop_back();
  same->insert(same->end() - 1, circle.begin(), circle.end());
}

Finding deadlock(const graph::Examination& examination, const std::vector<Suspect>& circle) {
  Finding finding = accuse(examination, kKind, circle);
  const std::string second =
      circle.size() > 1 ? fmt::format(" and {}", place(circle[1].place)) : std::string();
  finding.summary =
      circle.size() > 1
          ? fmt::format("threads of {} wait for each other's locks ({}{}){}", who(circle),
                        place(circle.front().place), second, and_who_waits(finding))
          : fmt::format("a thread of {} waits ({}) for a lock that it already holds{}", who(circle),
                        place(circle.front().place), and_who_waits(finding));
  finding.fix = circle.size() > 1
                    ? "Take these locks in the same order everywhere, or use one lock for both."
                    : "Use threading.RLock, or release the lock before calling this function.";
  const auto signal = circle.size() == 1 && circle.front().thread != nullptr
                          ? interruption(examination.job, *circle.front().thread)
                          : std::nullopt;
  if (signal) {
    tell_interruption(circle, *signal, finding);
  }
  return finding;
}

/// One thread holds the lock and waits for what the other one does after it has got the lock.
std::optional<Finding> waits_inside(const graph::Examination& examination,
                                    const model::Process& process) {
  const auto sure = stuck(examination);
  const auto found = sure ? wait_under_lock(examination.job, process) : std::nullopt;
  if (!found) {
    return std::nullopt;
  }
  const Confidence confidence =
      found->proven && *sure == Confidence::kLikely ? Confidence::kCertain : *sure;
  const std::string awaited =
      found->awaited.empty() ? std::string("there") : fmt::format("in {}()", found->awaited);
  const std::vector<Suspect> both = {
      member(examination, process, *found->holder,
             fmt::format("holds {} and waits {} without a timeout", found->lock, awaited),
             confidence),
      member(examination, process, *found->wanter, fmt::format("wants {}", found->lock),
             confidence)};
  Finding finding = accuse(examination, kKind, both);
  finding.summary = fmt::format(
      "{} holds {} while it waits ({}); its thread {} needs that lock to end the wait ({})",
      who(both), found->lock, place(both.front().place), found->wanter->name,
      place(both.back().place));
  finding.fix = fmt::format("Release {} before {}, or wait with a timeout.", found->lock,
                            found->awaited.empty() ? "waiting" : found->awaited + "()");
  return finding;
}

/// Each rank waits for a call of another one.
std::optional<Finding> waits_for_calls(const graph::Examination& examination) {
  const auto sure = stuck(examination);
  std::vector<Suspect> all;
  for (const graph::Standing* standing :
       sure ? rpc_circle(examination) : std::vector<const graph::Standing*>{}) {
    all.push_back(member(examination, *standing->process, *standing->thread,
                         "reads a queue that only a call of another rank fills", *sure));
    all.back().rank = standing->rank;
  }
  if (all.empty()) {
    return std::nullopt;
  }
  Finding finding = accuse(examination, kKind, all);
  finding.summary = fmt::format(
      "{} wait for each other: each reads a queue ({} and {}) that only an RPC of another "
      "rank could fill",
      said(finding.culprits), place(all.front().place), place(all.back().place));
  finding.fix = "Send before you read on one of the ranks, or read with a timeout.";
  return finding;
}

void add_other_deadlock(const graph::Examination& examination, const model::Process& process,
                        Findings& findings) {
  const auto sure = stuck(examination);
  if (auto inside = waits_inside(examination, process)) {
    findings.push_back(std::move(*inside));
  } else if (sure) {
    Findings others = library_deadlocks(examination, process, *sure);
    others = others.empty() ? native_deadlocks(examination, process, *sure) : std::move(others);
    std::move(others.begin(), others.end(), std::back_inserter(findings));
  }
}

Findings detect(const graph::Examination& examination) {
  Findings findings;
  if (auto calls = waits_for_calls(examination)) {
    findings.push_back(std::move(*calls));
    return findings;
  }
  std::set<const model::Process*> told;
  std::vector<std::vector<Suspect>> over_ranks;
  for (const auto& cycle : examination.waits.cycles()) {
    const auto circle = circle_by_owner(examination, cycle);
    if (!circle.empty()) {
      findings.push_back(deadlock(examination, circle));
      told.insert(circle.front().process);
    }
    auto ranks =
        may_hang(examination) ? circle_over_ranks(examination, cycle) : std::vector<Suspect>{};
    if (!ranks.empty()) {
      add_circle(over_ranks, std::move(ranks), examination);
    }
  }
  for (const auto& circle : over_ranks) {
    findings.push_back(locked_in_collective(examination, circle));
  }
  for (const model::Process* process : processes(examination.job)) {
    const auto circle =
        told.contains(process) ? std::vector<Suspect>{} : circle_by_source(examination, *process);
    if (!circle.empty()) {
      findings.push_back(deadlock(examination, circle));
    } else if (!told.contains(process)) {
      add_other_deadlock(examination, *process, findings);
    }
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "Threads wait for each other's locks",
    .explanation =
        R"(What you see: one rank is in `with some_lock:`; a second thread of the same process is in a different lock; the other
ranks wait for that rank in a collective.

Why: thread A holds lock 1 and wants lock 2, thread B holds lock 2 and wants lock 1 (or one thread takes a plain Lock twice). Or
thread A holds the lock and waits for something (room in a queue, an event, a result) that thread B provides once it has the lock.

How ddpdoctor knows: the owners that are stored in the mutexes and RLocks form a cycle. Other Python locks store no owner; for them,
the source around each line of the stacks shows which locks a thread has already taken. A context of yours around a lock (a class with `__enter__`, a
`@contextmanager`) is followed to the lock object. Where names do not show it, it is possible if two threads alone hold locks.
Of native mutexes: the frames further out are in the library that waits, and a hook of malloc, a signal handler, garbage collection or
an exit handler called it again; or two threads are each in the library whose mutex the other one wants. Known pairs of functions in
libraries (ProcessPoolExecutor's wake-up pipe) count, too, and a signal handler or destructor that ran inside submit() or Queue.put().

Fix: take the locks in one order in all threads.
      def export():
    -     with queue_lock:
    -         with model_lock:
    +     with model_lock:
    +         with queue_lock:)",
    .detect = detect,
    .specificity = kMechanism,
};

}  // namespace ddpdoctor::detectors::lock_deadlock
