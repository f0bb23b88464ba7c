// SPDX-License-Identifier: Apache-2.0
// What dead jobs leave on a machine: named shared-memory segments, ranks without a launcher,
// spools. Finding them changes nothing; removal is one by one, and each is checked again just
// before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "collector/sources/files/file_users.h"
#include "collector/sources/processes/candidates.h"

namespace ddpdoctor::leftovers {

enum class Kind { kSegment, kProcess, kSpool };

/// kFree: unused, and owned by this user. kUsed: a process uses it, so it is not a leftover.
/// kUnknown: use could not be determined. kForeign: owned by another user.
enum class State { kFree, kUsed, kUnknown, kForeign };

struct Leftover {
  Kind kind = Kind::kSegment;
  State state = State::kUnknown;
  std::string name;    // "/dev/shm/torch_7_1_0", "process 77", "/tmp/ddpdoctor-abcdef"
  std::string detail;  // a process's command line; empty for others
  std::string why;     // one sentence that explains the state
  std::uint64_t bytes = 0;
  double age = 0;  // seconds since its last change; for a process, since its start
  uid_t uid = 0;
  std::optional<pid_t> creator;  // for a segment, from its name
  std::vector<pid_t> users;      // processes that map it or have it open
  std::optional<int> rank;       // for a process
  pid_t pid = 0;                 // for a process
  std::uint64_t start_ticks = 0;
  sources::WantedFile file;  // for a segment, or the folder of a spool
};

/// Where to search and whose things may be removed; tests use other folders.
struct Scope {
  std::string shm = "/dev/shm";
  std::string temporary = "/tmp";
  uid_t uid = 0;         // the user who asks
  double now = 0;        // seconds since the epoch
  double youngest = 60;  // seconds; a newer file may still be in transfer between two processes
};

/// The scope of this machine and user.
Scope scope_here(double youngest);

std::vector<Leftover> segments(const Scope& scope);
std::vector<Leftover> spools(const Scope& scope);
/// Ranks and workers whose launcher or parent has exited.
std::vector<Leftover> orphans(sources::Candidates& candidates, const Scope& scope);

/// All leftovers, segments first, without those in state kUsed.
std::vector<Leftover> find(const Scope& scope);

/// Checks the leftover again and removes it; the error says what has changed or what prevents it.
base::Result<void> remove(const Leftover& leftover, const Scope& scope);

std::string_view state_name(State state);
std::string_view kind_name(Kind kind);

}  // namespace ddpdoctor::leftovers
