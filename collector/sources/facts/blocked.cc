// SPDX-License-Identifier: Apache-2.0
// The kernel object that each sleeping thread waits for, with all processes that could end the
// wait. Omits threads without Python code or a program of their own: they serve other threads.
#include <algorithm>

#include "collector/sources/facts/fact_sources.h"
#include "collector/sources/waits/objects.h"

namespace ddpdoctor::sources {

namespace {

bool runs_python(const stacks::ThreadStack& thread) {
  return std::any_of(thread.frames.begin(), thread.frames.end(), [](const stacks::Frame& frame) {
    return frame.language == stacks::Language::kPython;
  });
}

void add_fact(const JobProcess& process, const stacks::ThreadStack& thread, const ObjectWait& wait,
              Facts& facts) {
  RawFact fact = fact_about(process, "blocked-on");
  fact.fields["tid"] = std::int64_t{thread.tid};
  fact.fields["object"] = wait.object;
  fact.fields["object_kind"] = wait.kind;
  fact.fields["operation"] = wait.operation;
  fact.fields["enders"] = pid_list(wait.enders);
  fact.fields["open"] = wait.open;
  fact.fields["ready"] = wait.ready;
  if (wait.queued) {
    fact.fields["queued_bytes"] = *wait.queued;
  }
  if (wait.waiters) {
    fact.fields["waiters"] = *wait.waiters;
  }
  if (!wait.name.empty()) {
    fact.fields["path"] = wait.name;
  }
  facts.push_back(std::move(fact));
}

}  // namespace

void add_blocked_facts(const Scene& scene, Facts& facts) {
  for (const stacks::ProcessStacks& stacks : scene.stacks) {
    const JobProcess* process = scene.context.job().find(stacks.pid);
    for (const stacks::ThreadStack& thread : stacks.threads) {
      const bool counts = runs_python(thread) || thread.tid == stacks.pid;
      if (process == nullptr || !counts) {
        continue;
      }
      const WaitingThread waiting{.process = *process, .stacks = stacks, .thread = thread};
      if (const auto wait = object_wait(scene.context, waiting)) {
        add_fact(*process, thread, *wait, facts);
      }
    }
  }
}

}  // namespace ddpdoctor::sources
