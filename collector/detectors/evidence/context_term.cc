// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/context_term.h"

#include <algorithm>
#include <csignal>
#include <vector>

#include <fmt/format.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kContextFile = "zmq/sugar/context.py";

bool waits_in_term(const model::Thread& thread) {
  const model::Frame* python = model::innermost_python(thread);
  return python != nullptr && python->function == "term" && python->file.ends_with(kContextFile);
}

bool is_in_destructor(const model::Thread& thread) {
  return python_frame_in(thread, kContextFile, {"__del__"}) != nullptr;
}

/// A person or a time limit ends a hung process with SIGABRT to get its stacks.
bool is_alive_or_aborted(const model::Process& process) {
  return alive(process) || (process.exit && process.exit->signal == SIGABRT);
}

std::optional<Suspect> waiting_in_term(const graph::Examination& examination,
                                       const model::Process& process, Confidence still) {
  const auto found = std::find_if(
      process.threads.begin(), process.threads.end(),
      [](const model::Thread& thread) { return thread.state != 'R' && waits_in_term(thread); });
  if (!is_alive_or_aborted(process) || found == process.threads.end()) {
    return std::nullopt;
  }
  Suspect suspect = suspect_in(examination, process, &*found);
  suspect.confidence = still;
  suspect.note = is_in_destructor(*found) ? "the destructor of a zmq.Context runs here and waits"
                                          : "the wait for the end of a zmq.Context";
  suspect.evidence = fmt::format(
      "{} of {} is in Context.term(){}, which waits until each socket of that context is closed",
      full_thread_name(*found), named(process.pid, "a process"),
      is_in_destructor(*found) ? ", called by a destructor" : "");
  return suspect;
}

}  // namespace

Findings context_terms(const graph::Examination& examination, std::string_view kind) {
  const auto still = stuck(examination);
  if (!still) {
    return {};
  }
  std::vector<Suspect> suspects;
  for (const model::Process* process : processes(examination.job)) {
    if (auto suspect = waiting_in_term(examination, *process, *still)) {
      suspects.push_back(std::move(*suspect));
    }
  }
  Findings out;
  for (const auto& there : by_place(std::move(suspects))) {
    Finding finding = accuse(examination, kind, there);
    finding.summary =
        fmt::format("{} {} in zmq's Context.term() ({}) for a socket that was not closed{}",
                    who(there), finding.culprits.size() > 1 ? "wait" : "waits",
                    place(there.front().place), and_who_waits(finding));
    finding.fix =
        "Close each socket of that context before, in the thread that uses it "
        "(socket.close(linger=0)). Or call context.destroy(linger=0) yourself.";
    out.push_back(std::move(finding));
  }
  return out;
}

}  // namespace ddpdoctor::detectors
