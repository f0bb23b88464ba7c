// SPDX-License-Identifier: Apache-2.0
// Temporary spools of `ddpdoctor run` whose owner was killed: folders ddpdoctor-XXXXXX that contain
// only rings.
#include <algorithm>
#include <filesystem>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/stat.h>

#include "collector/leftovers/leftover.h"
#include "wire/names.h"

namespace ddpdoctor::leftovers {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "ddpdoctor-";
constexpr std::size_t kRandom = 6;  // random letters of mkdtemp
constexpr std::size_t kMostFiles = 65536;

bool is_spool_name(const std::string& name) {
  return name.starts_with(kPrefix) && name.size() == kPrefix.size() + kRandom;
}

/// The rings in the folder; nothing when it contains anything else.
std::optional<std::vector<sources::WantedFile>> rings_of(const std::string& folder) {
  std::vector<sources::WantedFile> rings;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    sources::WantedFile file;
    const std::string path = entry->path().string();
    if (!path.ends_with(wire::kRingSuffix) || rings.size() >= kMostFiles ||
        !sources::look_at(path, file) || !S_ISREG(file.mode)) {
      return std::nullopt;
    }
    rings.push_back(std::move(file));
  }
  return error ? std::nullopt : std::optional(std::move(rings));
}

/// A process that records there, or a ddpdoctor that was running when the folder was made.
pid_t owner_of(const std::string& folder, double made, sources::Candidates& candidates) {
  for (const auto& [pid, row] : candidates.table()) {
    if (row.kernel_thread || row.state == 'Z' || pid == ::getpid()) {
      continue;
    }
    if (row.comm == "ddpdoctor" && row.start_time <= made + 1) {
      return pid;
    }
    const auto& environment = candidates.completed(pid).environment;
    const auto spool = environment.find(wire::kSpoolVariable);
    if (spool != environment.end() && spool->second == folder) {
      return pid;
    }
  }
  return 0;
}

/// A process of the folder's owner whose environment is not readable.
pid_t unasked(uid_t uid, sources::Candidates& candidates) {
  for (const auto& [pid, row] : candidates.table()) {
    const sources::ProcessRow& whole = candidates.completed(pid);
    if (!row.kernel_thread && row.state != 'Z' && row.uid == uid && whole.environment.empty() &&
        !whole.problem.empty()) {
      return pid;
    }
  }
  return 0;
}

void judge_spool(Leftover& spool, const std::vector<sources::WantedFile>& rings, double changed,
                 const Scope& scope) {
  const sources::FileUsers users =
      rings.empty() ? sources::FileUsers{} : sources::users_of_files(rings);
  sources::Candidates candidates(sources::read_process_table());
  const bool used =
      std::any_of(rings.begin(), rings.end(),
                  [&users](const sources::WantedFile& ring) { return users.used(ring); });
  // The kernel's lock state of every ring replaces the answer of unreadable processes.
  const auto says = [&rings](sources::Holding answer) {
    return std::count_if(rings.begin(), rings.end(), [answer](const sources::WantedFile& ring) {
      return sources::holding(ring) == answer;
    });
  };
  const bool held = says(sources::Holding::kSomebody) > 0;
  const bool free = !rings.empty() && says(sources::Holding::kNobody) == std::ssize(rings);
  const pid_t owner = owner_of(spool.name, changed, candidates);
  if (used || held || owner != 0 || spool.age < scope.youngest) {
    spool.state = State::kUsed;
    spool.why = owner != 0 ? fmt::format("process {} records there", owner) : "it is in use";
  } else if (!free && sources::users_of_files({}).others_hidden) {
    spool.why = "processes outside this container cannot be checked for recording there";
  } else if (const pid_t pid = free ? 0 : unasked(spool.uid, candidates); pid != 0) {
    spool.why = fmt::format("process {} could not be checked for recording there", pid);
  } else {
    spool.state = spool.uid == scope.uid ? State::kFree : State::kForeign;
    spool.why = fmt::format("{} rings of a run that was killed", rings.size());
  }
}

}  // namespace

std::vector<Leftover> spools(const Scope& scope) {
  std::vector<Leftover> found;
  std::error_code error;
  fs::directory_iterator entry(scope.temporary, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    Leftover spool;
    const std::string path = entry->path().string();
    if (!is_spool_name(entry->path().filename().string()) || !sources::look_at(path, spool.file) ||
        !S_ISDIR(spool.file.mode)) {
      continue;
    }
    const auto rings = rings_of(path);
    struct stat state{};
    if (!rings || ::lstat(path.c_str(), &state) != 0) {
      continue;  // another user's folder, or not readable
    }
    spool.kind = Kind::kSpool;
    spool.name = path;
    spool.uid = state.st_uid;
    const auto changed = static_cast<double>(state.st_mtim.tv_sec);
    spool.age = std::max(0.0, scope.now - changed);
    for (const sources::WantedFile& ring : *rings) {
      std::error_code gone;
      const auto size = fs::file_size(ring.path, gone);
      spool.bytes += gone ? 0 : size;
    }
    judge_spool(spool, *rings, changed, scope);
    found.push_back(std::move(spool));
  }
  return found;
}

}  // namespace ddpdoctor::leftovers
