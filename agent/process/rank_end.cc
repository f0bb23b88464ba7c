// SPDX-License-Identifier: Apache-2.0
// Whether RANK in the environment is this process's own depends on its parents. Only exits of
// Python processes with such a variable reach this code.
#include "agent/process/rank_end.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent/process/their_stat.h"
#include "agent/process_state.h"
#include "agent/record/claim.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent {
namespace {

/// Searches for a few names in the initial environment of another process.
class TheirClaim {
 public:
  TheirClaim(pid_t pid, const char* variable) : variable_(variable) {
    const int fd = open(ProcPath(pid, "environ").text, O_RDONLY | O_CLOEXEC);
    char bytes[4096];
    ssize_t got = 0;
    while (fd >= 0 && (got = read(fd, bytes, sizeof bytes)) > 0) {
      for (ssize_t i = 0; i < got; ++i) {
        take(bytes[i]);
      }
    }
    if (fd >= 0) {
      close(fd);
    }
  }
  std::int32_t rank = -1;
  std::int32_t local_rank = -1;

 private:
  void take(char byte) {
    if (byte != 0) {
      if (length_ + 1 < sizeof entry_) {
        entry_[length_++] = byte;
      }
      return;
    }
    entry_[length_] = 0;
    length_ = 0;
    take_number(variable_, rank);
    take_number("LOCAL_RANK=", local_rank);
  }

  void take_number(const char* variable, std::int32_t& into) const {
    const std::size_t length = strlen(variable);
    if (strncmp(entry_, variable, length) == 0) {
      into = static_cast<std::int32_t>(strtol(entry_ + length, nullptr, 10));
    }
  }

  const char* variable_;
  char entry_[64] = {};
  std::size_t length_ = 0;
};

bool is_python(pid_t pid) {
  char path[512];
  const ssize_t length = readlink(ProcPath(pid, "exe").text, path, sizeof path - 1);
  path[length > 0 ? length : 0] = 0;
  const char* const slash = strrchr(path, '/');
  return slash != nullptr && strncmp(slash + 1, "python", 6) == 0;
}

/// Below a rank, perhaps with shells in between. The initial environment names a rank; a rank that
/// set its variable later has a ring.
bool is_below_rank(const Claim& own) {
  constexpr int kDeepest = 8;
  pid_t above = getppid();
  for (int i = 0; i < kDeepest && above > 1; ++i) {
    const TheirStat stat = stat_of(above);
    const TheirClaim theirs(above, own.variable);
    const bool same = theirs.rank == own.rank && theirs.local_rank == own.local_rank;
    if (theirs.rank >= 0 && !same) {
      return false;
    }
    if (is_python(above)) {
      return same || rank_in_ring_of(above, stat.start_ticks) == own.rank;
    }
    if (!same) {
      return false;
    }
    above = stat.parent;
  }
  return false;
}

bool ends_as_rank() {
  const ProcessState& state = process_state();
  const Claim claim = claim_of_environment();
  if (claim.rank < 0 || state.pid != static_cast<std::uint32_t>(getpid())) {
    return false;  // after vfork this is still the parent process
  }
  const bool named_itself = claim.rank != state.claimed_rank;
  if ((state.forked && !named_itself) || dlsym(RTLD_DEFAULT, "Py_GetVersion") == nullptr) {
    return false;
  }
  return named_itself || !is_below_rank(claim);
}

}  // namespace

void remember_claim() {
  process_state().claimed_rank = claim_of_environment().rank;
}

wire::Ring* ring_at_the_end() {
  wire::Ring* ring_now = ring();
  if (ring_now == nullptr && ends_as_rank()) {
    ring_now = ring_or_make();
    if (ring_now != nullptr && ring_now->header.rank < 0) {
      const Claim claim = claim_of_environment();
      ring_now->header.rank = claim.rank;
      ring_now->header.world_size = claim.world_size;
    }
  }
  return ring_now;
}

}  // namespace ddpdoctor::agent
