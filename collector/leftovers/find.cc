// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <ctime>
#include <unistd.h>

#include "collector/leftovers/leftover.h"

namespace ddpdoctor::leftovers {

Scope scope_here(double youngest) {
  Scope scope;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no code here calls setenv
  const char* folder = std::getenv("TMPDIR");
  if (folder != nullptr && *folder == '/') {
    scope.temporary = folder;
  }
  scope.uid = ::geteuid();
  scope.now = static_cast<double>(::time(nullptr));
  scope.youngest = youngest;
  return scope;
}

std::vector<Leftover> find(const Scope& scope) {
  std::vector<Leftover> found = segments(scope);
  sources::Candidates candidates(sources::read_process_table());
  for (auto&& more : {orphans(candidates, scope), spools(scope)}) {
    found.insert(found.end(), more.begin(), more.end());
  }
  std::erase_if(found, [](const Leftover& one) { return one.state == State::kUsed; });
  return found;
}

std::string_view state_name(State state) {
  switch (state) {
    case State::kFree:
      return "left-behind";
    case State::kUsed:
      return "used";
    case State::kUnknown:
      return "unknown";
    case State::kForeign:
      return "other-user";
  }
  return "unknown";
}

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::kSegment:
      return "segment";
    case Kind::kProcess:
      return "process";
    case Kind::kSpool:
      return "spool";
  }
  return "segment";
}

}  // namespace ddpdoctor::leftovers
