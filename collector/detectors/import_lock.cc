// SPDX-License-Identifier: Apache-2.0
// import-lock: a thread imports a module that another thread of the process is still importing, and
// that thread waits for the first one: module-level code that starts a thread and joins it. Neither
// import ends, and the other ranks wait for this one.
#include <algorithm>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/graph/working.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::import_lock {
namespace {

constexpr std::string_view kKind = "import-lock";
constexpr std::string_view kImportMachinery = "<frozen importlib._bootstrap>";

bool waits_for_import(const model::Thread& thread) {
  return waits_on(thread, "import-lock") != nullptr ||
         python_frame_in(thread, kImportMachinery, {"acquire", "_lock_unlock_module"}) != nullptr;
}

/// It is importing a module itself: it runs the module's code and holds its lock.
bool imports(const model::Thread& thread) {
  return !waits_for_import(thread) &&
         python_frame_in(thread, kImportMachinery, {"_find_and_load", "_load_unlocked"}) != nullptr;
}

/// Each of two threads waits for the module that the other one imports.
const model::Thread* waits_in_turn(const model::Process& process, const model::Thread& waiter) {
  const auto target = [](const model::Thread& thread) {
    const model::WaitsOn* wait = waits_on(thread, "import-lock");
    return wait == nullptr ? std::nullopt : target_thread(*wait);
  };
  for (const model::Thread& other : process.threads) {
    if (&other != &waiter && waits_for_import(other) && target(waiter) == other.tid &&
        target(other) == waiter.tid) {
      return &other;
    }
  }
  return nullptr;
}

/// The module's code makes progress, or will by itself: it computes, sleeps for some time, or waits
/// with a timeout.
bool goes_on(const model::JobModel& job, const model::Process& process,
             const model::Thread& importer) {
  return graph::ran_between_looks(job, process, importer) || sleeps_by_choice(importer) ||
         (importer.waits_on && importer.waits_on->limit);
}

/// The blocking line of the importing thread: the user's, else the innermost one of the module
/// being imported.
model::CallSite blocked_line(const model::Thread& thread) {
  const model::Frame* user = own_user_frame(thread);
  return user == nullptr ? model::CallSite{} : model::call_site(*user);
}

std::optional<Suspect> half_imported(const graph::Examination& examination,
                                     const model::Process& process) {
  const auto waiter =
      std::find_if(process.threads.begin(), process.threads.end(), waits_for_import);
  const auto holder = std::find_if(process.threads.begin(), process.threads.end(), imports);
  const auto still = stuck(examination);
  if (!alive(process) || waiter == process.threads.end() || !still || process.threads.size() < 2 ||
      graph::ran_between_looks(examination.job, process, *waiter)) {
    return std::nullopt;
  }
  const model::Thread* other = waits_in_turn(process, *waiter);
  if (other == nullptr && holder != process.threads.end() &&
      goes_on(examination.job, process, *holder)) {
    return std::nullopt;
  }
  const bool held = other == nullptr && holder != process.threads.end() && asleep(*holder);
  const bool both = other != nullptr || held;
  const model::Thread& blamed = held ? *holder : *waiter;
  Suspect suspect = suspect_in(examination, process, &blamed);
  suspect.place = blocked_line(blamed);
  suspect.confidence = both ? *still : Confidence::kPossible;
  suspect.note = both ? "this import waits for a thread that needs the same import"
                      : "this import waits for a different thread";
  suspect.evidence =
      both ? fmt::format(
                 "thread {} of process {} waits for the import lock of a module; thread {} is "
                 "importing it and is asleep",
                 waiter->tid, process.pid, other == nullptr ? holder->tid : other->tid)
           : fmt::format("thread {} of process {} waits for the import lock of a module",
                         waiter->tid, process.pid);
  return suspect;
}

Findings detect(const graph::Examination& examination) {
  std::vector<Suspect> suspects;
  for (const model::Process* process : processes(examination.job)) {
    if (auto suspect = half_imported(examination, *process)) {
      suspects.push_back(std::move(*suspect));
    }
  }
  Findings findings;
  for (const auto& there : by_place(std::move(suspects))) {
    Finding finding = accuse(examination, kKind, there);
    finding.summary = fmt::format(
        "an import in {} never finishes ({}): two of its threads wait for each other's import{}",
        who(there), place(there.front().place), and_who_waits(finding));
    finding.fix =
        "Move the code that starts or joins a thread out of the module into a function. Import the "
        "module in the main thread first.";
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "Two threads wait for each other's import",
    .explanation = R"(What you see: one rank is in an import statement; the others wait for it.

Why: every module has a lock while it is imported. Module-level code starts a thread (or a pool) and waits for it; that thread
imports the same module and waits for the lock.

How ddpdoctor knows: one thread is in _ModuleLock.acquire, and another thread sleeps in the middle of an import.

Fix:
      # tokenizer_rules.py
    - worker.start(); worker.join()
    + def load():
    +     worker.start(); worker.join())",
    .detect = detect,
    .specificity = kMechanism,
};

}  // namespace ddpdoctor::detectors::import_lock
