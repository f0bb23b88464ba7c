// SPDX-License-Identifier: Apache-2.0
// Named shared memory. A segment counts as free only after the maps and descriptors of every
// process that could use it were read.
#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/text.h"
#include "collector/leftovers/leftover.h"
#include "collector/sources/processes/proc_file.h"
#include "collector/sources/processes/process_table.h"

namespace ddpdoctor::leftovers {
namespace {

constexpr std::size_t kMostSegments = 65536;

/// Names used by torch's libshm and reductions, multiprocessing.shared_memory, semaphores, NCCL,
/// CUDA IPC, and OpenMPI and MPICH between ranks of one machine.
bool of_training(std::string_view name) {
  constexpr std::array<std::string_view, 9> kPrefixes{"torch_",     "psm_",           "sem.",
                                                      "mp-",        "nccl-",          "cuda.shm.",
                                                      "ddpdoctor-", "vader_segment.", "mpich_shm_"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

/// A program may keep its own named semaphore on purpose; those of multiprocessing and joblib are
/// useless after their process.
bool may_be_meant_to_stay(std::string_view name) {
  return name.starts_with("sem.") && !name.starts_with("sem.mp-") && !name.starts_with("sem.loky-");
}

/// "torch_PID_RANDOM_COUNT".
std::optional<pid_t> creator_in(std::string_view name) {
  constexpr std::string_view kPrefix = "torch_";
  if (!name.starts_with(kPrefix)) {
    return std::nullopt;
  }
  const std::string_view rest = name.substr(kPrefix.size());
  const std::size_t end = rest.find('_');
  const auto pid = sources::number<pid_t>(rest.substr(0, end));
  return end != std::string_view::npos && pid && *pid > 0 ? pid : std::nullopt;
}

bool lives(pid_t pid) {
  const auto row = sources::read_process(pid);
  return row && row->state != 'Z' && row->state != 'X';
}

std::vector<Leftover> listed(const Scope& scope) {
  std::vector<Leftover> found;
  std::error_code error;
  std::filesystem::directory_iterator entry(scope.shm, error);
  for (; !error && entry != std::filesystem::directory_iterator() && found.size() < kMostSegments;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    Leftover segment;
    struct stat state{};
    if (!of_training(name) || ::lstat(entry->path().c_str(), &state) != 0 ||
        !S_ISREG(state.st_mode) || !sources::look_at(entry->path().string(), segment.file)) {
      continue;
    }
    segment.kind = Kind::kSegment;
    segment.name = entry->path().string();
    segment.bytes = static_cast<std::uint64_t>(state.st_size);
    segment.uid = state.st_uid;
    const auto changed = static_cast<double>(std::max(state.st_mtim.tv_sec, state.st_ctim.tv_sec));
    segment.age = std::max(0.0, scope.now - changed);
    segment.creator = creator_in(name);
    found.push_back(std::move(segment));
  }
  return found;
}

/// The process that prevents calling the segment unused; empty when there is none.
std::string doubt(const Leftover& segment, const sources::FileUsers& users) {
  if (sources::holding(segment.file) == sources::Holding::kNobody) {
    return {};
  }
  if (users.others_hidden) {
    return "processes outside this container share /dev/shm and cannot be seen from here";
  }
  const auto* unasked = users.suspect(segment.file);
  return unasked == nullptr ? ""
                            : fmt::format("process {} ({}) could not be checked for using it",
                                          unasked->pid, unasked->command);
}

/// Why it is in use; empty when it is not.
std::string use(Leftover& segment, const sources::FileUsers& users, const Scope& scope) {
  if (const auto found = users.users.find(segment.file.id); found != users.users.end()) {
    segment.users.assign(found->second.begin(), found->second.end());
    return fmt::format("used by {}", fmt::join(segment.users, ", "));
  }
  if (segment.creator && lives(*segment.creator)) {
    return fmt::format("its creator, process {}, is running", *segment.creator);
  }
  if (segment.age < scope.youngest) {
    return "changed a moment ago: two processes may be passing it on";
  }
  return sources::holding(segment.file) == sources::Holding::kSomebody
             ? "a process that cannot be seen from here has it open"
             : "";
}

void judge(Leftover& segment, const sources::FileUsers& users, const Scope& scope) {
  if (segment.why = use(segment, users, scope); !segment.why.empty()) {
    segment.state = State::kUsed;
  } else if (segment.why = doubt(segment, users); !segment.why.empty()) {
    segment.state = State::kUnknown;
  } else if (may_be_meant_to_stay(base::file_name(segment.name))) {
    segment.why = "no process uses it, but a program gave it this name and may want it again";
  } else {
    segment.state = segment.uid == scope.uid ? State::kFree : State::kForeign;
    segment.why = segment.creator
                      ? fmt::format("its creator, process {}, has exited; no process uses it",
                                    *segment.creator)
                      : "no live process maps it or has it open";
  }
}

}  // namespace

std::vector<Leftover> segments(const Scope& scope) {
  std::vector<Leftover> found = listed(scope);
  std::vector<sources::WantedFile> files;
  for (const Leftover& segment : found) {
    files.push_back(segment.file);
  }
  if (found.empty()) {
    return found;
  }
  const sources::FileUsers users = sources::users_of_files(files);
  for (Leftover& segment : found) {
    judge(segment, users, scope);
  }
  std::sort(found.begin(), found.end(), [](const Leftover& a, const Leftover& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.name < b.name;
  });
  return found;
}

}  // namespace ddpdoctor::leftovers
