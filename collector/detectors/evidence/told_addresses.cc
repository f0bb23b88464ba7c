// SPDX-License-Identifier: Apache-2.0
// Values are compared only within one notation: torchrun's --master-port, the MASTER_PORT of its
// ranks and init_method may rightly name three addresses.
#include "collector/detectors/evidence/told_addresses.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/address_notes.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/written_after.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestQuotedLine = 240;
constexpr std::size_t kMostShown = 4096;  // processes with a value

/// Who shows a value.
enum class Sort { kRank, kNode, kLog, kUnnamed };
using AddressSource = std::pair<Sort, int>;  // its number; without a name, the value itself

struct Seen {
  std::set<std::string> values;
  std::string line;
};

/// By name and notation.
using Notes = std::map<std::pair<std::string, std::string>, std::map<AddressSource, Seen>>;

bool rendezvous_failed(const model::JobModel& job) {
  return !sightings(job, "rendezvous-incomplete").empty() ||
         !sightings(job, "master-unreachable").empty() ||
         std::any_of(job.logs.begin(), job.logs.end(), [](const model::Log& log) {
           const bool inside = log.text.find("in _create_c10d_store") != std::string::npos ||
                               log.text.find("in _store_based_barrier") != std::string::npos;
           return inside && log.text.find("Traceback (most recent call last)") != std::string::npos;
         });
}

/// The names of the logs, in order; empty if they do not correspond.
std::vector<std::string> log_names(const model::JobModel& job) {
  std::vector<std::string> out;
  for (const std::string& observed : job.coverage.observed) {
    if (observed.starts_with(model::kReadAsLog)) {
      out.emplace_back(
          base::file_name(std::string_view(observed).substr(model::kReadAsLog.size())));
    }
  }
  return out.size() == job.logs.size() ? out : std::vector<std::string>();
}

AddressSource speaker_of_value(const LogLine& line, bool several_logs, const ShownAddress& value) {
  if (const auto rank = line.rank ? line.rank : rank_variable(line.text)) {
    return {Sort::kRank, *rank};
  }
  if (const auto node = number_of_node(line.text)) {
    return {Sort::kNode, *node};
  }
  if (several_logs) {
    return {Sort::kLog, static_cast<int>(line.log)};
  }
  int port = 0;
  std::from_chars(value.value.data(), value.value.data() + value.value.size(), port);
  return {Sort::kUnnamed, port};
}

Notes read_notes(const model::JobModel& job) {
  Notes out;
  for (const LogStream& stream : log_streams(job)) {
    for (const LogLine& line : stream) {
      for (ShownAddress& one : addresses_in(line.text)) {
        const AddressSource who = speaker_of_value(line, job.logs.size() > 1, one);
        auto& speakers = out[{one.name, one.notation}];
        if (speakers.contains(who) || speakers.size() < kMostShown) {
          Seen& seen = speakers[who];
          seen.values.insert(std::move(one.value));
          seen.line = seen.line.empty() ? std::string(base::trim(line.text)) : seen.line;
        }
      }
    }
  }
  return out;
}

/// A rank that waits for all others serves the port that it prints: another port to which a rank
/// cannot connect is a different rendezvous.
void add_sockets(const model::JobModel& job, Notes& notes) {
  const auto sockets = notes.extract({"MASTER_PORT", "socket"});
  if (sockets.empty() || sightings(job, "rendezvous-incomplete").empty()) {
    return;
  }
  auto& printed = notes[{"MASTER_PORT", "env master_port"}];
  for (const auto& [who, seen] : sockets.mapped()) {
    if (who.first == Sort::kRank) {
      printed.try_emplace(who, seen);
    }
  }
}

/// The address to which a client of the store connects decides: a different one that its process
/// prints is not used, such as a default of its configuration.
void drop_unused(const std::map<AddressSource, Seen>& sockets, Notes& notes) {
  for (auto& [key, speakers] : notes) {
    std::erase_if(speakers, [&sockets](const auto& one) {
      const auto socket = sockets.find(one.first);
      const auto port = [](const std::string& value) { return value.substr(value.rfind(':') + 1); };
      const auto is_used = [&](const std::string& value) {
        return port(value).find_first_not_of("0123456789") != std::string::npos ||  // a host
               socket->second.values.contains(port(value));
      };
      return socket != sockets.end() && !one.second.values.empty() &&
             std::none_of(one.second.values.begin(), one.second.values.end(), is_used);
    });
  }
}

/// A process that shows the values of two camps was started again with a different one: these are
/// attempts, not processes that disagree.
bool are_attempts(const std::vector<AddressCamp>& camps,
                  const std::map<AddressSource, Seen>& speakers) {
  return std::any_of(speakers.begin(), speakers.end(), [&camps](const auto& one) {
    return std::count_if(camps.begin(), camps.end(), [&one](const AddressCamp& camp) {
             return one.second.values.contains(camp.value);
           }) > 1;
  });
}

bool is_said_in_logs(const model::JobModel& job, std::string_view words) {
  return std::any_of(job.logs.begin(), job.logs.end(), [words](const model::Log& log) {
    return log.text.find(words) != std::string::npos;
  });
}

/// A host may have several names and addresses: a rank that cannot connect to the one it was given
/// decides.
bool cannot_connect_to(const model::JobModel& job, const std::string& host) {
  return is_said_in_logs(job, fmt::format("trying to connect to ({}, ", host)) ||
         is_said_in_logs(job, fmt::format("any network address of ({}, ", host)) ||
         is_said_in_logs(job, fmt::format("ailed to connect to [{}]:", host));
}

bool decides(const model::JobModel& job, const std::string& name,
             const std::vector<AddressCamp>& camps) {
  std::set<std::string> ports;
  bool astray = false;
  for (const AddressCamp& camp : camps) {
    ports.insert(camp.value.substr(camp.value.rfind(':') + 1));
    astray = astray || (!camp.ranks.contains(0) && cannot_connect_to(job, camp.value));
  }
  const bool host = name == "MASTER_ADDR" || name == "--master-addr" || name.ends_with("_ip");
  return host ? astray : ports.size() == camps.size();
}

/// The ranks whose lines are in each log.
std::map<std::size_t, model::RankSet> ranks_of_logs(const model::JobModel& job) {
  std::map<std::size_t, model::RankSet> out;
  for (const LogStream& stream : log_streams(job)) {
    for (const LogLine& line : stream) {
      if (line.rank) {
        out[line.log].insert(*line.rank);
      }
    }
  }
  return out;
}

/// The values that processes of one sort show in one notation.
class Camps {
 public:
  explicit Camps(const model::JobModel& job) : files_(log_names(job)), ranks_(ranks_of_logs(job)) {}

  [[nodiscard]] std::vector<AddressCamp> of(Sort sort,
                                            const std::map<AddressSource, Seen>& speakers) const {
    std::map<std::string, AddressCamp> camps;
    for (const auto& [who, seen] : speakers) {
      if (who.first != sort || seen.values.size() != 1) {
        continue;
      }
      AddressCamp& camp = camps[*seen.values.begin()];
      camp.value = *seen.values.begin();
      camp.line = camp.line.empty() ? base::elide(base::printable(seen.line), kLongestQuotedLine)
                                    : camp.line;
      add(who, camp);
    }
    std::vector<AddressCamp> out;
    for (auto& [value, camp] : camps) {
      out.push_back(std::move(camp));
    }
    keep_disjoint(out);
    return out;
  }

 private:
  void add(const AddressSource& who, AddressCamp& camp) const {
    const auto [sort, number] = who;
    const auto log = static_cast<std::size_t>(number);
    if (sort == Sort::kRank) {
      camp.ranks.insert(number);
    } else if (sort == Sort::kNode) {
      camp.others.push_back(fmt::format("node {}", number));
    } else if (sort == Sort::kLog) {
      camp.others.push_back(log < files_.size() ? files_[log] : fmt::format("log {}", number + 1));
      const auto ranks = ranks_.find(log);
      camp.ranks = ranks == ranks_.end() ? camp.ranks : camp.ranks.united(ranks->second);
    }
  }
  /// Logs that contain lines of the same ranks do not show whose value it is.
  static void keep_disjoint(std::vector<AddressCamp>& camps) {
    model::RankSet all;
    bool apart = true;
    for (const AddressCamp& camp : camps) {
      apart = apart && !camp.ranks.empty() && camp.ranks.common(all).empty();
      all = all.united(camp.ranks);
    }
    for (AddressCamp& camp : camps) {
      camp.ranks = apart ? camp.ranks : model::RankSet();
    }
  }

  std::vector<std::string> files_;
  std::map<std::size_t, model::RankSet> ranks_;
};

}  // namespace

std::vector<AddressDispute> told_addresses(const model::JobModel& job) {
  if (job.logs.empty()) {
    return {};
  }
  const bool failed = rendezvous_failed(job);
  if (!failed && output_goes_on(job)) {
    return {};
  }
  Notes notes = read_notes(job);
  const auto sockets = notes[{"MASTER_PORT", "socket"}];
  add_sockets(job, notes);
  drop_unused(sockets, notes);
  const Camps camps(job);
  // A start script that finds a port in use tries the next one.
  const bool retried = is_said_in_logs(job, "ddress already in use");
  std::vector<AddressDispute> out;
  for (const auto& [key, speakers] : notes) {
    for (const Sort sort : {Sort::kRank, Sort::kNode, Sort::kLog, Sort::kUnnamed}) {
      AddressDispute dispute{.name = key.first, .camps = camps.of(sort, speakers)};
      // Ranks that print different addresses and then nothing never met, whatever ended the job.
      if ((!failed && sort != Sort::kRank) || dispute.camps.size() < 2 ||
          are_attempts(dispute.camps, speakers) || (sort == Sort::kUnnamed && retried)) {
        continue;
      }
      // "master_port" in small letters is a word of configurations and of prose, too.
      const bool bare = key.second == "master_port" || key.second == "master_addr";
      dispute.decides =
          sort != Sort::kUnnamed && !bare && decides(job, dispute.name, dispute.camps);
      out.push_back(std::move(dispute));
      break;
    }
  }
  return out;
}

bool addresses_differ(const model::JobModel& job) {
  const auto disputes = told_addresses(job);
  return std::any_of(disputes.begin(), disputes.end(),
                     [](const AddressDispute& one) { return one.decides; });
}

}  // namespace ddpdoctor::detectors
