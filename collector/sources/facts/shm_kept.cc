// SPDX-License-Identifier: Apache-2.0
// Processes that keep many named segments of many ages mapped: tensors of DataLoader workers with
// the file_system strategy, each of which is a file until its last user releases it.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/text.h"
#include "collector/sources/facts/fact_sources.h"
#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::sources {
namespace {

constexpr std::string_view kSegments = "/dev/shm/torch_";
// A batch in use has fewer tensors.
constexpr std::size_t kFewest = 32;
constexpr std::size_t kMostStated = 512;  // further segments are only counted

/// The paths of segments in a process's maps, and its total number of mappings.
struct Kept {
  std::set<std::string> paths;
  std::size_t mappings = 0;
};

Kept kept_by(const stacks::Maps& maps) {
  Kept kept{.paths = {}, .mappings = maps.all().size()};
  for (const stacks::Mapping& mapping : maps.all()) {
    const std::size_t at = mapping.path.find(kSegments);
    if (at != std::string_view::npos && !mapping.deleted) {
      kept.paths.emplace(mapping.path.substr(at));
    }
  }
  return kept;
}

std::optional<RawFact> fact_of(const Scene& scene, const JobProcess& process) {
  const Kept kept = kept_by(scene.context.maps(process.row.pid));
  if (kept.paths.size() < kFewest) {
    return std::nullopt;
  }
  const std::string root = proc_path(process.row.pid, "root");
  double bytes = 0;
  std::size_t stated = 0;
  std::set<std::int64_t> moments;  // half-second intervals in which segments were created
  std::map<double, std::string> by_time;
  for (const std::string& path : kept.paths) {
    struct stat state{};
    if (stated == kMostStated || ::stat((root + path).c_str(), &state) != 0) {
      continue;
    }
    const double made = static_cast<double>(state.st_mtim.tv_sec) +
                        static_cast<double>(state.st_mtim.tv_nsec) * 1e-9;
    ++stated;
    bytes += static_cast<double>(state.st_size);
    moments.insert(static_cast<std::int64_t>(made * 2));
    by_time.emplace(made, path);
  }
  if (by_time.empty()) {
    return std::nullopt;
  }
  struct statvfs usage{};
  RawFact fact = fact_about(process, "shm-kept");
  fact.fields["count"] = static_cast<std::int64_t>(kept.paths.size());
  fact.fields["bytes"] = static_cast<std::int64_t>(bytes / static_cast<double>(stated) *
                                                   static_cast<double>(kept.paths.size()));
  fact.fields["moments"] = static_cast<std::int64_t>(moments.size());
  fact.fields["oldest"] = by_time.begin()->second;
  fact.fields["oldest_seconds"] = std::max(0.0, scene.now - by_time.begin()->first);
  fact.fields["time"] = scene.now;
  fact.fields["mappings"] = static_cast<std::int64_t>(kept.mappings);
  const auto limit = number<std::int64_t>(
      base::trim(read_file("/proc/sys/vm/max_map_count", kSmallFile).value_or("")));
  if (limit) {
    fact.fields["mappings_limit"] = *limit;
  }
  if (::statvfs((root + "/dev/shm").c_str(), &usage) == 0) {
    fact.fields["bytes_free"] =
        static_cast<std::int64_t>(usage.f_bavail) * static_cast<std::int64_t>(usage.f_frsize);
  }
  return fact;
}

}  // namespace

void add_kept_segments(const Scene& scene, Facts& facts) {
  const auto many = [](const RawFact& fact) {
    const auto count = fact.fields.find("segments");
    return fact.kind == "shm-usage" && count != fact.fields.end() &&
           std::get<std::int64_t>(count->second) >= static_cast<std::int64_t>(kFewest);
  };
  if (std::none_of(facts.begin(), facts.end(), many)) {
    return;
  }
  for (const JobProcess& process : scene.context.job().processes) {
    if (auto fact = fact_of(scene, process)) {
      facts.push_back(std::move(*fact));
    }
  }
}

}  // namespace ddpdoctor::sources
