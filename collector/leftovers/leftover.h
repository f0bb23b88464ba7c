// SPDX-License-Identifier: Apache-2.0
// What dead jobs leave on a machine: named segments of shared memory, ranks without a launcher,
// spools. Found by looking only; removed one by one, each looked at again right before.
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

/// kFree: nobody uses it and it is ours. kUsed: somebody does, it is no leftover. kUnknown: whether
/// somebody does could not be seen. kForeign: it is another user's.
enum class State { kFree, kUsed, kUnknown, kForeign };

struct Leftover {
  Kind kind = Kind::kSegment;
  State state = State::kUnknown;
  std::string name;    // "/dev/shm/torch_7_1_0", "process 77", "/tmp/ddpdoctor-abcdef"
  std::string detail;  // a process's command line; empty for others
  std::string why;     // one sentence for the state
  std::uint64_t bytes = 0;
  double age = 0;  // seconds since its last change; of a process, since its start
  uid_t uid = 0;
  std::optional<pid_t> creator;  // of a segment, from its name
  std::vector<pid_t> users;      // who maps it or has it open
  std::optional<int> rank;       // of a process
  pid_t pid = 0;                 // of a process
  std::uint64_t start_ticks = 0;
  sources::WantedFile file;  // of a segment, or the folder of a spool
};

/// Where to look and whose things may be removed; tests look elsewhere.
struct Scope {
  std::string shm = "/dev/shm";
  std::string temporary = "/tmp";
  uid_t uid = 0;         // of the person who asks
  double now = 0;        // seconds since the epoch
  double youngest = 60;  // seconds: what changed later may be on its way between two processes
};

/// A scope for this machine and user.
Scope scope_here(double youngest);

std::vector<Leftover> segments(const Scope& scope);
std::vector<Leftover> spools(const Scope& scope);
/// Ranks and workers whose launcher or parent is gone.
std::vector<Leftover> orphans(sources::Candidates& candidates, const Scope& scope);

/// All of them, segments first; `state` kUsed is left out.
std::vector<Leftover> find(const Scope& scope);

/// Looks at it once more and removes it; the error says what has changed or what forbids it.
base::Result<void> remove(const Leftover& leftover, const Scope& scope);

std::string_view state_name(State state);
std::string_view kind_name(Kind kind);

}  // namespace ddpdoctor::leftovers
