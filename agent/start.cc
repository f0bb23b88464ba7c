// SPDX-License-Identifier: Apache-2.0
// The only constructor: reads the recording folder and prepares for forks. Opens nothing; a program
// such as `/bin/true` runs unchanged.
#include <cstdlib>
#include <pthread.h>
#include <unistd.h>

#include "agent/inside.h"
#include "agent/nccl/nccl_background.h"
#include "agent/nccl/nccl_communicators.h"
#include "agent/nccl/nccl_completion.h"
#include "agent/process/rank_end.h"
#include "agent/process_state.h"
#include "agent/record/native_site.h"
#include "agent/record/python_site.h"
#include "agent/record/recorder.h"
#include "agent/slots/slots.h"
#include "wire/names.h"

namespace ddpdoctor::agent {

void exit_observed(int status, void*);
void find_functions_of_handlers();
void find_functions_of_descriptors();
void find_functions_of_spawn();
void find_functions_of_maps();
void find_functions_of_waits();
void find_functions_that_kill();
void forget_graphs();

ProcessState& process_state() {
  static constinit ProcessState state{};
  return state;
}

void become_a_child() {
  ProcessState& state = process_state();
  const std::uint32_t parent = state.pid;
  if (state.team_threads > 0) {
    state.parent_team = parent;
    state.team_threads = 0;
  }
  if (state.cuda_started) {
    state.cuda_before_fork = parent;
    state.cuda_started = false;
    state.cuda_contexts = 0;
  }
  state.pid = static_cast<std::uint32_t>(getpid());
  state.forked = true;
  remember_claim();
  forget_ring();
  forget_sites();
  forget_native_sites();
  nccl::stop_watching();
  nccl::forget_all();
  nccl::forget_background();
  forget_graphs();
  forget_who_looks();
}

namespace {

__attribute__((constructor)) void start() {
  const Inside inside;
  find_functions_of_maps();
  const char* const spool = getenv(wire::kSpoolVariable);
  if (spool == nullptr) {
    return;
  }
  const char* const nccl_wanted = getenv("DDPDOCTOR_NCCL");
  nccl::switched_off = nccl_wanted != nullptr && nccl_wanted[0] == '0';
  find_functions_of_handlers();
  find_functions_of_descriptors();
  find_functions_of_spawn();
  find_functions_of_waits();
  find_functions_that_kill();
  choose_spool(spool);
  process_state().pid = static_cast<std::uint32_t>(getpid());
  remember_claim();
  pthread_atfork(note_who_else_runs, nullptr, become_a_child);
  on_exit(exit_observed, nullptr);
  begin_with_slots();
}

}  // namespace
}  // namespace ddpdoctor::agent
