// SPDX-License-Identifier: Apache-2.0
// /dev/shm in every mount namespace of the job: its usage and its named segments.
#include <algorithm>
#include <dirent.h>
#include <fcntl.h>
#include <memory>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "collector/sources/facts/fact_sources.h"
#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::sources {

namespace {

constexpr std::size_t kMostSegments = 256;  // the largest are listed, all are counted
constexpr std::size_t kMostEntries = 65536;

struct Segment {
  std::string name;
  std::int64_t bytes = 0;
  double modified = 0;
  std::int64_t uid = 0;
};

bool belongs_to_training(std::string_view name) {
  return name.starts_with("torch_") || name.starts_with("sem.") || name.starts_with("nccl-") ||
         name.starts_with("psm_") || name.starts_with("gloo") || name.starts_with("cuda.shm");
}

std::vector<Segment> segments_in(const std::string& folder) {
  struct Close {
    void operator()(DIR* open) const {
      ::closedir(open);
    }
  };
  std::vector<Segment> found;
  const std::unique_ptr<DIR, Close> open(::opendir(folder.c_str()));
  while (open != nullptr && found.size() < kMostEntries) {
    const dirent* entry =
        ::readdir(open.get());  // NOLINT(concurrency-mt-unsafe): the stream is ours alone
    if (entry == nullptr) {
      break;
    }
    struct stat state{};
    if (belongs_to_training(entry->d_name) &&
        ::fstatat(::dirfd(open.get()), entry->d_name, &state, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(state.st_mode)) {
      const double modified = static_cast<double>(state.st_mtim.tv_sec) +
                              static_cast<double>(state.st_mtim.tv_nsec) * 1e-9;
      found.push_back(Segment{.name = entry->d_name,
                              .bytes = state.st_size,
                              .modified = modified,
                              .uid = state.st_uid});
    }
  }
  std::sort(found.begin(), found.end(), [](const Segment& a, const Segment& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.name < b.name;
  });
  return found;
}

/// "torch_PID_RANDOM_COUNT": libshm and torch's reductions put the creator's pid in the name.
std::optional<pid_t> creator_in_name(std::string_view name) {
  constexpr std::string_view kPrefix = "torch_";
  if (!name.starts_with(kPrefix)) {
    return std::nullopt;
  }
  const std::string_view rest = name.substr(kPrefix.size());
  const auto pid = number<pid_t>(rest.substr(0, rest.find('_')));
  return pid && *pid > 0 && rest.find('_') != std::string_view::npos ? pid : std::nullopt;
}

/// Which processes of the job map or have opened each segment.
class Users {
 public:
  explicit Users(const Scene& scene) : scene_(scene) {}

  const std::set<pid_t>& of(const std::string& name) {
    if (!known_) {
      known_ = true;
      for (const JobProcess& process : scene_.context.job().processes) {
        add_mapped_by(process.row.pid);
        for (const Descriptor& one : scene_.context.descriptors().of(process.row.pid)) {
          if (!one.deleted && one.link.starts_with(kFolder)) {
            pids_[one.link.substr(kFolder.size())].insert(process.row.pid);
          }
        }
      }
    }
    return pids_[name];
  }

 private:
  static constexpr std::string_view kFolder = "/dev/shm/";

  void add_mapped_by(pid_t pid) {
    for (const stacks::Mapping& mapping : scene_.context.maps(pid).all()) {
      const std::size_t at = mapping.path.find(kFolder);
      if (at != std::string_view::npos && !mapping.deleted) {
        pids_[std::string(mapping.path.substr(at + kFolder.size()))].insert(pid);
      }
    }
  }

  const Scene& scene_;
  std::map<std::string, std::set<pid_t>> pids_;  // by the segment's name
  bool known_ = false;
};

void add_segment(const Scene& scene, const JobProcess& process, const Segment& segment,
                 Users& users, Facts& facts) {
  RawFact fact{.rank = {}, .pid = {}, .kind = "shm-segment", .fields = {}};
  fact.fields["path"] = "/dev/shm/" + segment.name;
  fact.fields["bytes"] = segment.bytes;
  fact.fields["modified"] = segment.modified;
  fact.fields["age_seconds"] = std::max(0.0, scene.now - segment.modified);
  fact.fields["uid"] = segment.uid;
  const auto creator = creator_in_name(segment.name);
  const pid_t outer = creator ? scene.context.outer_pid(process.row, *creator) : 0;
  if (creator && outer > 0) {
    constexpr double kClockSlack = 1;  // seconds; start times are counted in clock ticks
    const auto row = read_process(outer);
    const JobProcess* member = scene.context.job().find(outer);
    fact.fields["creator_pid"] = std::int64_t{outer};
    fact.fields["creator_alive"] =
        row && row->state != 'Z' && row->start_time <= segment.modified + kClockSlack;
    fact.pid = outer;
    fact.rank = member == nullptr ? std::nullopt : member->rank;
  }
  const std::set<pid_t>& mapped_by = users.of(segment.name);
  fact.fields["mapped_by"] = pid_list(mapped_by);
  fact.fields["in_use"] = !mapped_by.empty();
  facts.push_back(std::move(fact));
}

void add_mount(const Scene& scene, const JobProcess& process, Users& users, Facts& facts) {
  const std::string folder = proc_path(process.row.pid, "root/dev/shm");
  struct statvfs usage{};
  if (::statvfs(folder.c_str(), &usage) != 0) {
    return;
  }
  const auto segments = segments_in(folder);
  std::int64_t segment_bytes = 0;
  for (const Segment& segment : segments) {
    segment_bytes += segment.bytes;
  }
  const auto block = static_cast<std::int64_t>(usage.f_frsize);
  const auto total = static_cast<std::int64_t>(usage.f_blocks) * block;
  const std::int64_t used = total - static_cast<std::int64_t>(usage.f_bfree) * block;
  RawFact fact{.rank = {}, .pid = process.row.pid, .kind = "shm-usage", .fields = {}};
  fact.fields["path"] = std::string("/dev/shm");
  fact.fields["bytes_total"] = total;
  fact.fields["bytes_free"] = static_cast<std::int64_t>(usage.f_bavail) * block;
  fact.fields["bytes_used"] = used;
  fact.fields["segments"] = static_cast<std::int64_t>(segments.size());
  fact.fields["segment_bytes"] = segment_bytes;
  fact.fields["unlinked_bytes"] = std::max(std::int64_t{0}, used - segment_bytes);
  facts.push_back(std::move(fact));
  for (std::size_t i = 0; i < std::min(segments.size(), kMostSegments); ++i) {
    add_segment(scene, process, segments[i], users, facts);
  }
}

}  // namespace

void add_shm_facts(const Scene& scene, Facts& facts) {
  Users users(scene);
  std::set<dev_t> seen;
  for (const JobProcess& process : scene.context.job().processes) {
    struct stat place{};
    if (::stat(proc_path(process.row.pid, "root/dev/shm").c_str(), &place) != 0) {
      continue;
    }
    if (seen.insert(place.st_dev).second) {
      add_mount(scene, process, users, facts);
    }
  }
}

}  // namespace ddpdoctor::sources
