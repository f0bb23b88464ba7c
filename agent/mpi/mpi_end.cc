// SPDX-License-Identifier: Apache-2.0
#include "agent/mpi/mpi_end.h"

#include <atomic>
#include <cstring>
#include <unistd.h>

#include "agent/mpi/mpi_calls.h"
#include "agent/mpi/mpi_record.h"
#include "agent/record/native_site.h"
#include "agent/record/python_site.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent {
namespace {

/// The process whose end was recorded; a forked child still records its own.
std::atomic<pid_t> told{0};

}  // namespace

bool mpi_ends_process(wire::Ring& ring, int status) {
  const pid_t self = getpid();
  if (told.load(std::memory_order_relaxed) == self) {
    return true;
  }
  const OpenMpiCall call = open_mpi_call();
  if (call.frame == 0) {
    return false;
  }
  told.store(self, std::memory_order_relaxed);
  const std::uint32_t python = call_site(ring);
  const std::uint32_t site = python != 0 ? python : native_site(ring, call.caller);
  const char* const name = mpi_calls[call.id].name + 1;
  ring.header.exit_value = status;
  ring.header.exit_time = now();
  ring.header.exit_site = site;
  ring.header.exit_kind = static_cast<std::uint32_t>(wire::ExitKind::kExit);
  record(ring, {.kind = wire::EventKind::kExit,
                .site = site,
                .count = status,
                .text = intern(ring, name, strlen(name)),
                .detail = static_cast<std::uint32_t>(wire::ExitKind::kExit)});
  return true;
}

}  // namespace ddpdoctor::agent
