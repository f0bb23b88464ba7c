// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/told_gil_holder.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

const model::Thread* holder_among_idle(const model::Process& process) {
  const model::Thread* holder = nullptr;
  for (const model::Thread& thread : process.threads) {
    if (thread.gil.value_or(false)) {
      holder = holder == nullptr ? &thread : nullptr;
    } else if (thread.state != 'S') {
      return nullptr;
    }
  }
  return process.threads.size() > 1 && holder != model::main_thread(process) ? holder : nullptr;
}

/// The line of the program, else the innermost one.
const model::Frame* line_in(const model::Thread& thread) {
  const model::Frame* user = model::user_frame(thread);
  return user == nullptr ? model::innermost_python(thread) : user;
}

}  // namespace

std::optional<Finding> told_gil_holder(const graph::Examination& examination) {
  if (examination.job.progress != model::Progress::kUnknown || examination.job.ended) {
    return std::nullopt;
  }
  const auto all = processes(examination.job);
  const model::Process* process = all.size() == 1 ? all.front() : nullptr;
  const model::Thread* holder = process != nullptr && alive(*process) && model::was_dumped(*process)
                                    ? holder_among_idle(*process)
                                    : nullptr;
  const model::Frame* frame = holder == nullptr ? nullptr : line_in(*holder);
  if (frame == nullptr) {
    return std::nullopt;
  }
  const model::CallSite site = model::call_site(*frame);
  const std::string thread = holder->name.empty()
                                 ? fmt::format("thread {}", holder->tid)
                                 : fmt::format("thread {}", base::printable(holder->name));
  const model::RankSet ranks = process->rank ? model::RankSet{*process->rank} : model::RankSet{};
  const std::string owner = process->rank ? said(ranks) : named(process->pid, "a process");
  Finding finding;
  finding.kind = "undetermined";
  finding.confidence = Confidence::kPossible;
  finding.summary = fmt::format(
      "{} of {} has the GIL in {} ({}), all other threads are idle; one dump does not show if a "
      "call "
      "blocks there",
      thread, owner, base::printable(frame->function), line_of(site));
  finding.locations.push_back(location(site, ranks, thread + " has the GIL here"));
  finding.evidence.push_back(
      {.rank = process->rank,
       .text = fmt::format("the dump marks thread {} as active with the GIL; the other {} {}",
                           holder->tid, process->threads.size() - 1,
                           process->threads.size() == 2 ? "sleeps" : "sleep")});
  finding.fix = fmt::format(
      "Run `py-spy dump --native --pid {}` twice, 10 s apart. If that thread stays in one call, "
      "release the GIL around it. Or call stream.synchronize() before it.",
      process->pid > 0 ? std::to_string(process->pid) : "PID");
  return finding;
}

}  // namespace ddpdoctor::detectors
