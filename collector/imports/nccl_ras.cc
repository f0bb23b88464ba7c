// SPDX-License-Identifier: Apache-2.0
// RAS counts launched operations, not completed ones, and ranks of a healthy job differ by a few:
// one answer can only raise a suspicion, two equal answers prove a hang.
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
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"
#include "collector/model/operations.h"

namespace ddpdoctor::imports {
namespace {

using model::Rank;

constexpr std::size_t kLongestHost = 256;

/// A process that did not answer RAS, as far as known.
struct Silent {
  std::string host;
  std::optional<std::int64_t> pid;
  bool dead = false;  // RAS has given it up; otherwise it only answered too late
};

/// The progress of the ranks of one communicator.
struct RasCommunicator {
  std::string id;
  std::int64_t size = 0;
  std::string operation;                 // operation of the counts; empty = all operations together
  std::map<Rank, std::int64_t> counts;   // launched operations, by rank in the communicator
  std::map<Rank, Silent> missing;        // ranks that did not answer
  std::optional<std::int64_t> majority;  // count of the ranks that are not listed
};

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
    call.operation = one.operation;
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

void add_fact(std::string text, model::JobModel& job) {
  model::Fact fact;
  fact.kind = "nccl-ras";
  fact.fields["text"] = base::elide(text, 8000);
  job.facts.push_back(std::move(fact));
}

/// The largest communicator is the world: only its ranks are global ranks.
void add_largest(std::vector<RasCommunicator> all, model::JobModel& job) {
  const auto largest = std::max_element(
      all.begin(), all.end(), [](const auto& a, const auto& b) { return a.size < b.size; });
  if (largest != all.end()) {
    add_communicator(*largest, job);
  }
  if (all.size() > 1) {
    job.coverage.warnings.push_back(fmt::format(
        "of {} communicators only the largest is compared: ranks of the others are not global",
        all.size()));
  }
}

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
          .host = base::elide(host.text().value_or(""), kLongestHost),
          .pid = pid.whole(1, kMaxPid),
          .dead = dead.flag().value_or(false)};
    }
  });
  return out;
}

/// "Rank 7 has launched up to operation 60 -- GPU 3 …", "Rank 0 -- GPU 0 managed by …".
std::optional<Rank> listed_rank(std::string_view line, std::string_view& rest) {
  if (!take_prefix(line, "Rank ")) {
    return std::nullopt;
  }
  const auto number = take_number(line, kMaxRank);
  rest = line;
  return number ? std::optional(static_cast<Rank>(*number)) : std::nullopt;
}

/// Reads the blocks below "#0-0 (27a079b828ff1a75) MISMATCH".
struct TextReading {
  std::vector<RasCommunicator> all;
  std::string told;
  std::int64_t size = 0;               // ranks in the first group of the table
  std::optional<std::int64_t> shared;  // count of the ranks listed next
  std::size_t current = 0;             // index in all: the communicator of this block
  bool of_processes = false;           // the block is about processes, not about a communicator
  bool dead = false;                   // the processes of the block were given up
  std::vector<Silent> silent;          // "Process 3487984 on node node1 managing GPU 5"

  void line(std::string_view text) {
    if (text.starts_with("#") && text.find(" (") != text.npos) {
      open(base::elide(between(text, "(", ")").value_or("0"), 64));
      told += std::string(text) + "\n";
    } else if (text == "DEAD" || text == "INCOMPLETE") {
      of_processes = true;
      dead = text == "DEAD";
    } else if (of_processes) {
      process(text);
    } else if (!all.empty()) {
      within(text, all[current]);
    }
  }

  /// A communicator has one block per problem.
  void open(std::string id) {
    of_processes = false;
    shared.reset();
    const auto known = std::find_if(all.begin(), all.end(),
                                    [&id](const RasCommunicator& one) { return one.id == id; });
    current = static_cast<std::size_t>(known - all.begin());
    if (known == all.end()) {
      all.push_back({.id = std::move(id),
                     .size = size,
                     .operation = {},
                     .counts = {},
                     .missing = {},
                     .majority = {}});
    }
  }

  void process(std::string_view text) {
    constexpr std::size_t kMost = 1000;
    const auto pid = between(text, "Process ", " on node ");
    const auto number = pid ? number_of(*pid, kMaxPid) : std::nullopt;
    if (number && silent.size() < kMost) {
      silent.push_back(
          {.host = base::elide(between(text, " on node ", " managing").value_or(""), kLongestHost),
           .pid = number,
           .dead = dead});
      told += std::string(text) + "\n";
    }
  }

  /// Processes are listed without ranks, and ranks without processes: one of each are matched; of
  /// several it is known only whether all were given up.
  void name_silent() {
    const bool all_dead =
        !silent.empty() &&
        std::all_of(silent.begin(), silent.end(), [](const Silent& one) { return one.dead; });
    for (RasCommunicator& one : all) {
      for (auto& [rank, missing] : one.missing) {
        if (silent.size() == 1 && one.missing.size() == 1) {
          missing = silent.front();
        }
        missing.dead = all_dead && one.missing.size() <= silent.size();
      }
    }
  }

  void within(std::string_view text, RasCommunicator& one) {
    constexpr std::string_view kLaunched = " launched up to operation ";
    std::string_view rest;
    const auto rank = listed_rank(text, rest);
    const std::size_t at = text.find(kLaunched);
    std::string_view digits =
        at == text.npos ? std::string_view() : text.substr(at + kLaunched.size());
    const auto count = take_number(digits, kMaxNumber);
    if (const auto operation = between(text, "have different ", " operation counts")) {
      one.operation = *operation == "collective" ? "" : model::operation_of(*operation).name;
    } else if (rank && count) {
      one.counts[*rank] = *count;
    } else if (count) {
      shared = count;
      one.majority = one.majority ? one.majority : count;  // the most frequent count comes first
    } else if (text.starts_with("Missing communicator data")) {
      shared.reset();
    } else if (rank && shared) {
      one.counts[*rank] = *shared;
    } else if (rank) {
      one.missing.try_emplace(*rank);
    } else if (take_prefix(text, "The missing rank: ") ||
               take_prefix(text, "The missing ranks: ")) {
      for (const std::string_view part : base::split(text, ',')) {
        if (const auto number = number_of(base::trim(part), kMaxRank)) {
          one.missing.try_emplace(static_cast<Rank>(*number));
        }
      }
    }
    told += std::string(text) + "\n";
  }

  /// "0  1  4  8  32  32  RUNNING  MISMATCH" of the table: ranks per communicator is the fifth.
  void row(std::string_view text) {
    std::vector<std::string_view> words;
    for (const std::string_view word : base::split(text, ' ')) {
      if (!word.empty()) {
        words.push_back(word);
      }
    }
    if (words.size() == 8 && number_of(words[0], 1'000'000) && size == 0) {
      size = number_of(words[4], model::kMaxWorldSize).value_or(0);
    }
  }
};

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
  add_fact(told, job);
  add_largest(std::move(all), job);
  job.coverage.observed.push_back("NCCL RAS: " + std::string(base::file_name(path)));
  return job;
}

bool is_ras_text(std::string_view head, std::string_view) {
  return head.find("NCCL version ") != std::string_view::npos &&
         head.find("Job summary") != std::string_view::npos &&
         head.find("Communicators...") != std::string_view::npos;
}

void read_ras_text(std::string_view text, model::JobModel& job) {
  if (text.find("Communicators...") == std::string_view::npos) {
    return;
  }
  TextReading reading;
  for (const std::string_view line : base::split(text, '\n')) {
    const std::string_view said = base::trim(model::read_log_line(line).text);
    reading.row(said);
    reading.line(said);
  }
  reading.name_silent();
  add_fact(reading.told, job);
  add_largest(std::move(reading.all), job);
}

}  // namespace ddpdoctor::imports
