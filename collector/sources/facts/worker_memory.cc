// SPDX-License-Identifier: Apache-2.0
// How much of a DataLoader worker's memory is private, and how much it still shares since the fork.
// Each write to a shared page (Python's reference counts are writes) makes a private copy.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "collector/sources/facts/fact_sources.h"
#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::sources {
namespace {

// The kernel walks all pages of a process for these sums (0.1 s per GB): reads two small processes,
// and only if all workers together use more memory than is free.
constexpr std::size_t kMeasured = 2;
constexpr std::int64_t kLargest = std::int64_t{2} << 30;

std::optional<std::int64_t> bytes_of(std::string_view text, std::string_view name) {
  constexpr std::int64_t kKilo = 1024;
  const auto fields = words(status_field(text, name).value_or(""));  // "123 kB"
  const auto value = fields.empty() ? std::nullopt : number<std::int64_t>(fields[0]);
  return value ? std::optional(*value * kKilo) : std::nullopt;
}

std::int64_t anonymous_bytes(pid_t pid) {
  return bytes_of(read_file(proc_path(pid, "status")).value_or(""), "RssAnon").value_or(0);
}

std::int64_t field(const RawFact& fact, const std::string& name) {
  const auto found = fact.fields.find(name);
  const auto* value =
      found == fact.fields.end() ? nullptr : std::get_if<std::int64_t>(&found->second);
  return value == nullptr ? 0 : *value;
}

/// The free memory of the machine, or of the memory group with the least.
std::int64_t room(const Facts& facts) {
  auto least = bytes_of(read_file("/proc/meminfo").value_or(""), "MemAvailable").value_or(0);
  for (const RawFact& fact : facts) {
    if (const auto limit = fact.kind == "memory" ? field(fact, "limit_bytes") : 0; limit > 0) {
      least =
          std::min(least, limit - field(fact, "usage_bytes") + field(fact, "reclaimable_bytes"));
    }
  }
  return std::max(std::int64_t{0}, least);
}

}  // namespace

void add_worker_memory(const Scene& scene, Facts& facts) {
  std::vector<const JobProcess*> workers;
  std::int64_t together = 0;
  for (const JobProcess& process : scene.context.job().processes) {
    if (process.role == JobRole::kDataLoaderWorker) {
      workers.push_back(&process);
      together += anonymous_bytes(process.row.pid);
    }
  }
  const std::int64_t left = workers.size() < 2 ? 0 : room(facts);
  if (workers.size() < 2 || together < left) {
    return;
  }
  std::size_t measured = 0;
  for (const JobProcess* worker : workers) {
    if (measured == kMeasured || anonymous_bytes(worker->row.pid) > kLargest) {
      continue;
    }
    const auto text = read_file(proc_path(worker->row.pid, "smaps_rollup")).value_or("");
    const auto own = bytes_of(text, "Private_Dirty");
    const auto shared = bytes_of(text, "Shared_Dirty");
    if (!own || !shared) {
      continue;
    }
    ++measured;
    RawFact fact = fact_about(*worker, "worker-memory");
    fact.fields["own_bytes"] = *own;
    fact.fields["shared_bytes"] = *shared;
    fact.fields["room_bytes"] = left;
    fact.fields["time"] = scene.now;
    facts.push_back(std::move(fact));
  }
}

}  // namespace ddpdoctor::sources
