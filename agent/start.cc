// SPDX-License-Identifier: Apache-2.0
// The only constructor: reads where to record and prepares for forks. Nothing is opened here;
// `/bin/true` under us stays `/bin/true`.
#include <cstdlib>
#include <pthread.h>
#include <unistd.h>

#include "agent/inside.h"
#include "agent/native_site.h"
#include "agent/process_state.h"
#include "agent/python_site.h"
#include "agent/recorder.h"
#include "agent/ring_file.h"
#include "wire/names.h"

namespace ddpdoctor::agent {

void exit_observed(int status, void*);
void find_functions_of_handlers();

ProcessState& process_state() {
  static constinit ProcessState state{};
  return state;
}

namespace {

void after_fork_in_child() {
  const bool recorded = ring() != nullptr;
  ProcessState& state = process_state();
  if (state.team_threads > 0) {
    state.parent_team = state.pid;
    state.team_threads = 0;
  }
  state.pid = static_cast<std::uint32_t>(getpid());
  inherit_across_fork();
  forget_ring();
  if (recorded) {
    forget_sites();
    forget_native_sites();
  }
}

__attribute__((constructor)) void start() {
  const Inside inside;
  const char* const spool = getenv(wire::kSpoolVariable);
  if (spool == nullptr) {
    return;
  }
  find_functions_of_handlers();
  choose_spool(spool);
  process_state().pid = static_cast<std::uint32_t>(getpid());
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  on_exit(exit_observed, nullptr);
}

}  // namespace
}  // namespace ddpdoctor::agent
