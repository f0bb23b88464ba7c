// SPDX-License-Identifier: Apache-2.0
// RAS counts launched operations, not completed ones, and ranks of a healthy job differ by a few:
// one answer can only raise a suspicion.
#include "collector/imports/nccl_ras.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/documents/json_cursor.h"
#include "collector/imports/documents/json_text.h"
#include "collector/imports/ras_parts.h"

namespace ddpdoctor::imports {
namespace {

using model::Rank;

void add_silent(Rank rank, const Silent& silent, model::JobModel& job) {
  model::Fact fact{.rank = rank, .pid = {}, .kind = "nccl-ras", .fields = {}};
  fact.fields["considered_dead"] = silent.dead;
  if (!silent.host.empty()) {
    fact.fields["host"] = silent.host;
  }
  if (silent.pid) {
    fact.pid = static_cast<pid_t>(*silent.pid);
  }
  job.facts.push_back(std::move(fact));
}

void add_communicator(const RasCommunicator& one, model::JobModel& job) {
  model::ProcessGroup group{.id = one.id, .name = {}, .backend = "nccl", .ranks = {}};
  for (Rank rank = 0; rank < std::min<std::int64_t>(one.size, model::kMaxWorldSize); ++rank) {
    group.ranks.push_back(rank);
  }
  if (one.size > job.world_size.value_or(0)) {
    job.world_size = static_cast<int>(one.size);
  }
  std::map<Rank, std::int64_t> counts = one.counts;
  for (const Rank rank : group.ranks) {
    if (one.majority && !counts.contains(rank) && !one.missing.contains(rank)) {
      counts[rank] = *one.majority;
    }
  }
  for (const auto& [rank, count] : counts) {
    model::CollectiveCall call;
    call.rank = rank;
    call.group = one.id;
    call.sequence = count;
    call.operation = count == 0 ? std::string() : one.operation;
    call.state = model::CallState::kEnqueued;
    job.collectives.push_back(std::move(call));
  }
  for (const auto& [rank, silent] : one.missing) {
    job.coverage.unobserved_ranks.insert(rank);
    add_silent(rank, silent, job);
  }
  const auto known = std::find_if(job.groups.begin(), job.groups.end(),
                                  [&one](const auto& other) { return other.id == one.id; });
  if (known == job.groups.end()) {
    job.groups.push_back(std::move(group));
  }
}

/// Its rank 3 is some other rank of the job.
void tell_smaller(const RasCommunicator& one, std::int64_t world, model::JobModel& job) {
  std::map<std::int64_t, model::RankSet> ranks;
  for (const auto& [rank, count] : one.counts) {
    ranks[count].insert(rank);
  }
  if (ranks.empty()) {
    return;
  }
  std::string told;
  for (const auto& [count, who] : ranks) {
    told += fmt::format("{}{} launched {}", told.empty() ? "" : ", ", who.said(), count);
  }
  job.coverage.warnings.push_back(
      fmt::format("communicator {} has {} of {} ranks, and RAS does not say which; numbered within "
                  "it, {} ({} operations)",
                  base::printable(one.id), one.size, world, told,
                  one.operation.empty() ? "collective" : one.operation));
}

}  // namespace

void add_ras_answer(std::vector<RasCommunicator> all, std::int64_t world, std::string told,
                    model::JobModel& job) {
  constexpr std::size_t kLongestAnswer = 8000;
  model::Fact fact;
  fact.kind = "nccl-ras";
  fact.fields["text"] = base::elide(told, kLongestAnswer);
  const auto largest = std::max_element(
      all.begin(), all.end(), [](const auto& a, const auto& b) { return a.size < b.size; });
  const bool is_world = largest != all.end() && largest->size >= world;
  if (is_world) {
    fact.fields["group"] = largest->id;
  }
  job.facts.push_back(std::move(fact));
  if (is_world) {
    add_communicator(*largest, job);
  }
  for (const RasCommunicator& one : all) {
    if (!is_world) {
      tell_smaller(one, world, job);
    }
  }
  if (is_world && all.size() > 1) {
    job.coverage.warnings.push_back(fmt::format(
        "of {} communicators only the largest is compared: ranks of the others are not global",
        all.size()));
  }
}

namespace {

RasCommunicator read_ras_communicator(const Cursor& in) {
  RasCommunicator out;
  const Cursor hash = in["hash"];
  const Cursor size = in["size"];
  const Cursor ranks = in["ranks"];
  const Cursor missing = in["missing_ranks"];
  out.id = hash.name().value_or("0");
  out.size = size.whole(0, model::kMaxWorldSize).value_or(0);
  ranks.each([&out](const Cursor& entry) {
    const Cursor rank = entry["rank"];
    const Cursor counts = entry["collective_counts"];
    std::int64_t sum = 0;
    counts.each_field([&sum](const std::string&, const Cursor& count) {
      sum += count.whole(0, std::int64_t{1} << 50).value_or(0);
    });
    if (const auto number = rank.whole(0, kMaxRank)) {
      out.counts[static_cast<Rank>(*number)] = sum;
    }
  });
  missing.each([&out](const Cursor& entry) {
    const Cursor rank = entry["rank"];
    const Cursor host = entry["host"];
    const Cursor pid = entry["pid"];
    const Cursor status = entry["status"];
    const Cursor dead = status["considered_dead"];
    if (const auto number = rank.whole(0, kMaxRank)) {
      out.missing[static_cast<Rank>(*number)] = {
          .host = base::elide(host.text().value_or(""), kLongestRasHost),
          .pid = pid.whole(1, kMaxPid),
          .dead = dead.flag().value_or(false)};
    }
  });
  return out;
}

}  // namespace

bool is_ras_json(std::string_view head, std::string_view) {
  return base::trim(head).starts_with('{') &&
         head.find("\"communicators\"") != std::string_view::npos &&
         head.find("\"nccl_version\"") != std::string_view::npos;
}

base::Result<model::JobModel> read_ras_json(std::string_view bytes, const std::string& path) {
  const PlainDocument document = TRY(read_json(bytes, path));
  Complaint complaint{.file = path, .first = {}};
  const Cursor root(document, complaint);
  const Cursor communicators = root["communicators"];
  model::JobModel job;
  std::vector<RasCommunicator> all;
  communicators.each([&](const Cursor& one) { all.push_back(read_ras_communicator(one)); });
  if (complaint.first) {
    return tl::make_unexpected(*complaint.first);
  }
  std::string told;
  for (const RasCommunicator& one : all) {
    told += fmt::format("{}: {} of {} ranks answered\n", one.id, one.counts.size(), one.size);
  }
  add_ras_answer(std::move(all), 0, std::move(told), job);
  job.coverage.observed.push_back("NCCL RAS: " + std::string(base::file_name(path)));
  return job;
}

}  // namespace ddpdoctor::imports
