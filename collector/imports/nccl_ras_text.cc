// SPDX-License-Identifier: Apache-2.0
// RAS's answer as text (src/ras/client_support.cc of NCCL 2.24 – 2.30). A block lists ranks for one
// of several reasons, and each has lines "Rank 3 -- GPU 3 managed by process 71 on node n1": the
// line above the list says which.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/nccl_ras.h"
#include "collector/imports/ras_parts.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/listed_ranks.h"
#include "collector/model/log_lines.h"
#include "collector/model/operations.h"

namespace ddpdoctor::imports {
namespace {

using model::Rank;

/// Why a block lists ranks.
enum class Listed { kOther, kMissing, kCounts };

/// "7 ranks have launched up to operation 64", and the ranks listed below it.
struct Share {
  std::int64_t count = 0;
  bool listed = false;
};

/// The counts of one operation in one communicator.
struct Counts {
  std::map<Rank, std::int64_t> of;
  std::vector<Share> shares;
};

struct ListedCommunicator {
  RasCommunicator known;
  std::map<std::string, Counts> counts;  // by operation; only operations whose counts differ
};

/// "Rank 7 has launched up to operation 60 -- GPU 3 …", "Rank 0 -- GPU 0 managed by …".
std::optional<Rank> listed_rank(std::string_view line) {
  if (!take_prefix(line, "Rank ")) {
    return std::nullopt;
  }
  const auto number = take_number(line, kMaxRank);
  return number ? std::optional(static_cast<Rank>(*number)) : std::nullopt;
}

/// "… launched up to operation 60 …", "… not launched any operations …".
std::optional<std::int64_t> launched(std::string_view line) {
  if (line.find(" have not launched any operations") != line.npos ||
      line.find(" has not launched any operations") != line.npos) {
    return 0;
  }
  return number_behind(line, " launched up to operation ", kMaxNumber);
}

/// Counts of several operations are added, as in the JSON form. Ranks that no list names have the
/// only count without a list; if two counts have none, theirs is unknown.
void settle_counts(ListedCommunicator& one) {
  RasCommunicator& out = one.known;
  std::int64_t rest = 0;
  bool rest_known = !one.counts.empty();
  std::map<const Counts*, std::int64_t> of_rest;
  for (const auto& [operation, counts] : one.counts) {
    const auto is_unlisted = [](const Share& share) { return !share.listed; };
    const auto first = std::find_if(counts.shares.begin(), counts.shares.end(), is_unlisted);
    const bool single = first != counts.shares.end() &&
                        std::none_of(std::next(first), counts.shares.end(), is_unlisted);
    rest_known = rest_known && single;
    of_rest[&counts] = single ? first->count : 0;
    rest += of_rest[&counts];
  }
  for (const auto& [operation, counts] : one.counts) {
    for (const auto& [rank, count] : counts.of) {
      const bool in_all =
          std::all_of(one.counts.begin(), one.counts.end(),
                      [rank = rank](const auto& other) { return other.second.of.contains(rank); });
      if (!rest_known && !in_all) {
        continue;
      }
      std::int64_t sum = 0;
      for (const auto& [name, other] : one.counts) {
        const auto own = other.of.find(rank);
        sum += own == other.of.end() ? of_rest[&other] : own->second;
      }
      out.counts[rank] = sum;
    }
  }
  out.operation = one.counts.size() == 1 ? one.counts.begin()->first : std::string();
  if (rest_known) {
    out.majority = rest;
  }
  for (const auto& [rank, count] : out.counts) {
    out.missing.erase(rank);  // its counter is in the answer
  }
}

/// Reads the blocks below "#0-0 (27a079b828ff1a75) MISMATCH".
struct TextReading {
  std::vector<ListedCommunicator> all;
  std::string told;
  std::map<std::int64_t, std::int64_t> sizes;  // ranks of the communicators of each group
  std::size_t current = 0;                     // index in all: the communicator of this block
  Listed listed = Listed::kOther;
  std::string operation;       // whose counts are listed
  bool of_processes = false;   // the block is about processes, not about a communicator
  bool dead = false;           // the processes of the block were given up
  std::vector<Silent> silent;  // "Process 3487984 on node node1 managing GPU 5"

  void line(std::string_view text) {
    if (text.starts_with("#") && text.find(" (") != text.npos) {
      open(text);
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
  void open(std::string_view heading) {
    of_processes = false;
    listed = Listed::kOther;
    std::string id = base::elide(between(heading, "(", ")").value_or("0"), 64);
    const auto group = number_behind(heading, "#", kMaxNumber);
    const auto size = group ? sizes.find(*group) : sizes.end();
    const auto known = std::find_if(all.begin(), all.end(), [&id](const ListedCommunicator& one) {
      return one.known.id == id;
    });
    current = static_cast<std::size_t>(known - all.begin());
    if (known == all.end()) {
      all.push_back({});
      all.back().known.id = std::move(id);
      all.back().known.size = size == sizes.end() ? world() : size->second;
    }
  }

  /// Ranks of the largest communicator in the table.
  [[nodiscard]] std::int64_t world() const {
    std::int64_t most = 0;
    for (const auto& [group, size] : sizes) {
      most = std::max(most, size);
    }
    return most;
  }

  void process(std::string_view text) {
    constexpr std::size_t kMost = 1000;
    const auto pid = between(text, "Process ", " on node ");
    const auto number = pid ? number_of(*pid, kMaxPid) : std::nullopt;
    if (number && silent.size() < kMost) {
      silent.push_back({.host = base::elide(between(text, " on node ", " managing").value_or(""),
                                            kLongestRasHost),
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
    for (ListedCommunicator& one : all) {
      for (auto& [rank, missing] : one.known.missing) {
        if (silent.size() == 1 && one.known.missing.size() == 1) {
          missing = silent.front();
        }
        missing.dead = all_dead && one.known.missing.size() <= silent.size();
      }
    }
  }

  void within(std::string_view text, ListedCommunicator& one) {
    const auto rank = listed_rank(text);
    const auto count = launched(text);
    if (const auto named = between(text, "have different ", " operation counts")) {
      operation = *named == "collective" ? "" : model::operation_of(*named).name;
      one.counts.try_emplace(operation);
      listed = Listed::kCounts;
    } else if (text.starts_with("Missing communicator data")) {
      listed = Listed::kMissing;
    } else if (text.ends_with(" different status") || text.starts_with("Initialization error") ||
               text.starts_with("Asynchronous error")) {
      listed = Listed::kOther;
    } else if (listed == Listed::kCounts) {
      counted(rank, count, one.counts[operation]);
    } else if (listed == Listed::kMissing) {
      missing(text, rank, one.known);
    }
    told += std::string(text) + "\n";
  }

  static void counted(std::optional<Rank> rank, std::optional<std::int64_t> count, Counts& counts) {
    if (rank && count) {
      counts.of[*rank] = *count;
    } else if (count) {
      counts.shares.push_back({.count = *count});
    } else if (rank && !counts.shares.empty() && !counts.of.contains(*rank)) {
      counts.shares.back().listed = true;
      counts.of[*rank] = counts.shares.back().count;
    }
  }

  static void missing(std::string_view text, std::optional<Rank> rank, RasCommunicator& one) {
    if (rank) {
      one.missing.try_emplace(*rank);
    } else if (take_prefix(text, "The missing rank: ") ||
               take_prefix(text, "The missing ranks: ")) {
      for (const Rank number : model::listed_ranks(text).ranks) {
        one.missing.try_emplace(number);
      }
    }
  }

  /// "0  1  4  8  32  32  RUNNING  MISMATCH" of the table: ranks per communicator is the fifth.
  void row(std::string_view text) {
    std::vector<std::string_view> words;
    for (const std::string_view word : base::split(text, ' ')) {
      if (!word.empty()) {
        words.push_back(word);
      }
    }
    const auto group = words.size() < 8 ? std::nullopt : number_of(words[0], 1'000'000);
    const auto size = group ? number_of(words[4], model::kMaxWorldSize) : std::nullopt;
    if (size && all.empty()) {
      sizes.try_emplace(*group, *size);
    }
  }
};

}  // namespace

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
    if (said.starts_with("Communicators...")) {
      reading = {};  // of several answers, the newest
    }
    reading.row(said);
    reading.line(said);
  }
  std::vector<RasCommunicator> all;
  for (ListedCommunicator& one : reading.all) {
    settle_counts(one);
  }
  reading.name_silent();
  for (ListedCommunicator& one : reading.all) {
    all.push_back(std::move(one.known));
  }
  const std::int64_t world = reading.world();
  add_ras_answer(std::move(all), world, std::move(reading.told), job);
}

}  // namespace ddpdoctor::imports
