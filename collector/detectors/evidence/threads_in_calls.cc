// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/threads_in_calls.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/path_ends.h"
#include "base/text.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

const std::vector<model::Process> kNoProcesses;

/// In a wait of the standard library or of a thread that only observes.
bool waits_for_work(const model::Frame& frame) {
  constexpr std::array<std::string_view, 12> kFiles = {
      "threading.py", "queue.py",           "selectors.py",     "socket.py", "ssl.py",
      "/asyncio/",    "concurrent/futures", "multiprocessing/", "tqdm/",     "zmq/",
      "uvloop/",      "/shm_broadcast.py"};
  return std::any_of(kFiles.begin(), kFiles.end(), [&frame](std::string_view file) {
    return base::path_contains(frame.file, file);
  });
}

}  // namespace

std::vector<std::string> threads_in_calls(const model::Process& process) {
  constexpr std::size_t kMostThreads = 4;
  std::vector<std::string> out;
  const model::Thread* main = model::main_thread(process);
  for (const model::Thread& thread : process.threads) {
    const model::Frame* at = model::innermost_python(thread);
    if (&thread == main || at == nullptr || waits_for_work(*at) || out.size() == kMostThreads) {
      continue;
    }
    out.push_back(fmt::format("{} is in {} ({}:{})",
                              thread.name.empty() ? std::string("another thread")
                                                  : "thread " + base::printable(thread.name),
                              base::printable(at->function), base::file_name(at->file), at->line));
  }
  return out;
}

void tell_threads_in_calls(const graph::Examination& examination, Finding& finding) {
  for (const graph::Standing& standing : examination.standings) {
    if (standing.process == nullptr || standing.activity != graph::Activity::kEventLoop) {
      continue;
    }
    for (std::string& text : threads_in_calls(*standing.process)) {
      finding.evidence.push_back({.rank = standing.rank, .text = std::move(text)});
    }
  }
}

void tell_other_processes(const graph::Examination& examination, Finding& finding) {
  constexpr std::size_t kMostProcesses = 4;
  const model::Observation* now = model::latest(examination.job);
  std::vector<Evidence> told;
  bool others = false;
  for (const model::Process& process : now == nullptr ? kNoProcesses : now->processes) {
    const model::Thread* main = model::main_thread(process);
    const bool other = process.role == model::Role::kOther;
    if (main == nullptr || (!other && !process.rank) || told.size() == kMostProcesses) {
      continue;
    }
    const auto at = std::find_if(main->frames.begin(), main->frames.end(), [](const auto& frame) {
      return frame.language == model::Language::kPython && !waits_for_work(frame);
    });
    if (at == main->frames.end()) {
      continue;
    }
    others = others || other;
    const std::string who = other ? with_command(process) : fmt::format("rank {}", *process.rank);
    told.push_back({.rank = other ? std::optional<model::Rank>() : process.rank,
                    .text = fmt::format("{} is in {} ({}:{})", who, base::printable(at->function),
                                        base::file_name(at->file), at->line)});
  }
  if (others) {
    finding.evidence.insert(finding.evidence.end(), told.begin(), told.end());
  }
}

}  // namespace ddpdoctor::detectors
