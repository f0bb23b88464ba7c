// SPDX-License-Identifier: Apache-2.0
// import-lock: a thread imports a module that another thread of the process is still importing, and
// that thread waits for the first one: module-level code that starts a thread and joins it. Neither
// import ends, and the other ranks wait for this one.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
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
constexpr std::string_view kOneImport = "waits with others for one import";
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

/// The line that imports: the innermost one outside the import machinery.
const model::Frame* import_line(const model::Thread& thread) {
  const auto found =
      std::find_if(thread.frames.begin(), thread.frames.end(), [](const model::Frame& frame) {
        return frame.language == model::Language::kPython &&
               !frame.file.starts_with("<frozen importlib");
      });
  return found == thread.frames.end() ? nullptr : &*found;
}

/// The blocking line of the importing thread: the user's, else that of the library that imports.
model::CallSite blocked_line(const model::Thread& thread) {
  const model::Frame* user = own_user_frame(thread);
  const model::Frame* line = user == nullptr ? import_line(thread) : user;
  return line == nullptr ? model::CallSite{} : model::call_site(*line);
}

/// "threads 8 and 9"; empty unless several threads wait for the import on one line.
std::string all_at_line(const model::Process& process, const model::Thread& waiter) {
  std::vector<pid_t> there;
  const model::Frame* line = import_line(waiter);
  for (const model::Thread& thread : process.threads) {
    const model::Frame* other = waits_for_import(thread) ? import_line(thread) : nullptr;
    if (line != nullptr && other != nullptr && other->file == line->file &&
        other->line == line->line) {
      there.push_back(thread.tid);
    }
  }
  if (there.size() < 2 || there.front() <= 0) {
    return {};
  }
  return "threads " + pids_said(there);
}

/// "html2text" of `import html2text` and `from html2text import convert`; empty if unknown.
std::string_view module_imported(const model::JobModel& job, const model::Thread& waiter) {
  const model::Frame* line = import_line(waiter);
  std::string_view text =
      line == nullptr
          ? std::string_view()
          : model::source_line(job, line->file, line->line).value_or(std::string_view());
  text = base::trim(text);
  const std::size_t word = text.starts_with("import ") ? 7 : text.starts_with("from ") ? 5 : 0;
  text = word == 0 ? std::string_view() : base::trim(text.substr(word));
  return text.substr(0, text.find_first_of(" ,;#"));
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
  const bool importing = holder != process.threads.end();
  const std::string together = both || importing ? std::string() : all_at_line(process, *waiter);
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
      : together.empty()
          ? fmt::format("thread {} of process {} waits for the import lock of a module",
                        waiter->tid, process.pid)
          : fmt::format("{} of process {} wait for the import lock of one module", together,
                        process.pid);
  if (!together.empty()) {
    suspect.deed = kOneImport;
    suspect.note = fmt::format("{} wait here for the lock of one module", together);
  }
  return suspect;
}

/// Several threads wait on one line of an import, and none of them imports the module.
void add_one_import(const graph::Examination& examination, const Suspect& suspect,
                    Finding& finding) {
  const std::string_view module = module_imported(examination.job, *suspect.thread);
  finding.summary =
      fmt::format("{} of {} wait for the import lock of {} ({}); no thread is importing it{}",
                  all_at_line(*suspect.process, *suspect.thread), who({suspect}),
                  module.empty() ? std::string_view("one module") : module, place(suspect.place),
                  and_who_waits(finding));
  finding.fix = fmt::format(
      "Import {} at the top of {}, or once in the main thread before the threads start.",
      module.empty() ? std::string_view("the module") : module,
      base::file_name(suspect.place.file));
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
    if (there.front().deed == kOneImport) {
      add_one_import(examination, there.front(), finding);
      findings.push_back(std::move(finding));
      continue;
    }
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

How ddpdoctor knows: one thread is in _ModuleLock.acquire, and another thread sleeps in the middle of an import. Or several
threads are in _ModuleLock.acquire for the import on one line.

Fix:
      # tokenizer_rules.py
    - worker.start(); worker.join()
    + def load():
    +     worker.start(); worker.join())",
    .detect = detect,
    .specificity = kMechanism,
};

}  // namespace ddpdoctor::detectors::import_lock
