// SPDX-License-Identifier: Apache-2.0
#include "collector/model/host_pids.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/model/questions.h"

namespace ddpdoctor::model {
namespace {

// Above PID_MAX_LIMIT of every kernel (4,194,304), and unlikely to occur in a text as a size, count
// or time.
constexpr std::int64_t kFirstNumber = 2'000'000'001;
constexpr std::size_t kMostNumbers = 100'000'000;
constexpr const char* kHost = "host";
constexpr std::string_view kOn = " on ";

/// (host, number on that host) → new number.
using Renumber = std::function<std::int64_t(const std::string& host, std::int64_t number)>;

bool is_decimal(char letter) {
  return letter >= '0' && letter <= '9';
}

std::optional<std::int64_t> whole_number(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc() && end == digits.data() + digits.size() ? std::optional(value)
                                                                      : std::nullopt;
}

/// The digits at the start of `text`.
std::string_view digits_of(std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_decimal);
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

/// Replaces every number after one of these words.
std::string renumbered(const std::string& text, std::initializer_list<std::string_view> words,
                       const std::string& host, const Renumber& other) {
  std::string out;
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto* const word = std::find_if(words.begin(), words.end(),
                                          [&rest](auto one) { return rest.starts_with(one); });
    if (word == words.end()) {
      out += rest.front();
      rest.remove_prefix(1);
      continue;
    }
    out += *word;
    rest.remove_prefix(word->size());
    const std::string_view digits = digits_of(rest);
    if (const auto number = whole_number(digits)) {
      out += std::to_string(other(host, *number));
      rest.remove_prefix(digits.size());
    }
  }
  return out;
}

bool names_a_process(std::string_view field) {
  return field == "pid" || field == "tid" || field.ends_with("_pid") || field.ends_with("_tid");
}

bool lists_processes(std::string_view field) {
  return field == "mapped_by" || field == "enders" || field.ends_with("_pids");
}

void renumber_fields(Fact& fact, const std::string& host, const Renumber& other) {
  for (auto& [name, value] : fact.fields) {
    if (auto* number = std::get_if<std::int64_t>(&value);
        number != nullptr && names_a_process(name)) {
      *number = other(host, *number);
    }
    auto* list = std::get_if<std::vector<std::string>>(&value);
    for (std::size_t i = 0; list != nullptr && lists_processes(name) && i < list->size(); ++i) {
      if (const auto number = whole_number((*list)[i])) {
        (*list)[i] = std::to_string(other(host, *number));
      }
    }
  }
}

void renumber(Process& process, const Renumber& other) {
  const auto to = [&](pid_t number) { return static_cast<pid_t>(other(process.host, number)); };
  process.pid = to(process.pid);
  process.ppid = to(process.ppid);
  for (Thread& thread : process.threads) {
    thread.tid = to(thread.tid);
    if (thread.waits_on) {
      thread.waits_on->target =
          renumbered(thread.waits_on->target, {"pid:", "thread:"}, process.host, other);
      thread.waits_on->detail = renumbered(thread.waits_on->detail, {" pid "}, process.host, other);
    }
  }
}

/// The launcher's pid belongs to the host on which such a launcher runs.
std::string host_of_launcher(const JobModel& job) {
  const Observation* now = latest(job);
  for (std::size_t i = 0; now != nullptr && i < now->processes.size(); ++i) {
    const Process& process = now->processes[i];
    if (process.role == Role::kLauncher && process.pid == job.launcher_pid) {
      return process.host;
    }
  }
  return {};
}

void renumber(JobModel& job, const Renumber& other) {
  if (job.launcher_pid) {
    job.launcher_pid =
        static_cast<pid_t>(other(host_of_launcher(job), std::int64_t{*job.launcher_pid}));
  }
  for (Observation& look : job.observations) {
    for (Process& process : look.processes) {
      renumber(process, other);
    }
  }
  for (Fact& fact : job.facts) {
    const auto host = fact.text(kHost);
    if (!host) {
      continue;
    }
    if (fact.pid) {
      fact.pid = static_cast<pid_t>(other(*host, *fact.pid));
    }
    renumber_fields(fact, *host, other);
  }
}

/// Hosts with observed processes, and the pids of these.
using Known = std::map<std::string, std::set<std::int64_t>>;

Known known_numbers(const JobModel& job) {
  Known known;
  for (const Observation& look : job.observations) {
    for (const Process& process : look.processes) {
      if (!process.host.empty() && process.pid > 0) {
        known[process.host].insert(process.pid);
      }
    }
  }
  return known;
}

std::optional<std::string> host_of(const Fact& fact, const std::map<Rank, std::string>& hosts,
                                   const Known& known) {
  if (fact.rank) {
    const auto found = hosts.find(*fact.rank);
    return found == hosts.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<std::string> only;
  for (const auto& [host, numbers] : known) {
    if (fact.pid && numbers.contains(*fact.pid)) {
      if (only) {
        return std::nullopt;
      }
      only = host;
    }
  }
  return only;
}

/// A fact with an unknown host must not refer to another host's process.
void place_facts(JobModel& job, const Known& known) {
  const std::map<Rank, std::string> hosts = hosts_of_ranks(job);
  for (Fact& fact : job.facts) {
    if (fact.text(kHost)) {
      continue;
    }
    if (const auto host = host_of(fact, hosts, known)) {
      fact.fields[kHost] = *host;
    } else {
      fact.pid.reset();
    }
  }
}

/// Kernel objects belong to one host too, and their names are numbers.
void name_objects(JobModel& job) {
  for (Fact& fact : job.facts) {
    const auto host = fact.text(kHost);
    const auto object = fact.text("object");
    if (fact.kind == "blocked-on" && host && object) {
      fact.fields["object"] = *object + std::string(kOn) + *host;
    }
  }
}

void forget_hosts_of_objects(JobModel& job) {
  for (Fact& fact : job.facts) {
    const auto host = fact.text(kHost);
    auto object = fact.text("object");
    const std::string tail = host ? std::string(kOn) + *host : std::string();
    if (fact.kind == "blocked-on" && host && object && object->ends_with(tail)) {
      object->resize(object->size() - tail.size());
      fact.fields["object"] = *object;
    }
  }
}

}  // namespace

HostPids HostPids::number(JobModel& job) {
  HostPids out;
  const Known known = known_numbers(job);
  if (known.size() < 2) {
    return out;
  }
  place_facts(job, known);
  std::map<std::pair<std::string, std::int64_t>, std::int64_t> numbers;
  renumber(job, [&](const std::string& host, std::int64_t number) {
    const auto seen = known.find(host);
    // Init is the parent of orphans on every host; a container's own init belongs to the job.
    const bool stays = number <= 0 || seen == known.end() ||
                       (number == 1 && !seen->second.contains(1)) || numbers.size() == kMostNumbers;
    if (stays) {
      return number;
    }
    const auto next = kFirstNumber + static_cast<std::int64_t>(numbers.size());
    const auto [entry, fresh] = numbers.emplace(std::pair(host, number), next);
    if (fresh) {
      out.places_[next] = {.host = host, .pid = static_cast<pid_t>(number)};
    }
    return entry->second;
  });
  name_objects(job);
  return out;
}

void HostPids::restore(JobModel& job) const {
  if (empty()) {
    return;
  }
  forget_hosts_of_objects(job);
  renumber(job, [this](const std::string&, std::int64_t number) { return local(number); });
}

std::string HostPids::host_of(std::int64_t number) const {
  const auto found = places_.find(number);
  return found == places_.end() ? std::string() : found->second.host;
}

std::int64_t HostPids::local(std::int64_t number) const {
  const auto found = places_.find(number);
  return found == places_.end() ? number : found->second.pid;
}

std::string HostPids::said(std::string_view text) const {
  std::string out;
  std::string host;  // to be inserted after the command that is being quoted
  bool quoted = false;
  const auto say_host = [&out](const std::string& name) {
    if (!name.empty() && !out.ends_with(std::string(kOn) + name)) {
      out += std::string(kOn) + name;
    }
  };
  while (!text.empty()) {
    const std::string_view digits = digits_of(text);
    if (!digits.empty()) {
      const auto number = whole_number(digits);
      const std::string named = number ? host_of(*number) : std::string();
      out += named.empty() ? std::string(digits) : std::to_string(local(*number));
      text.remove_prefix(digits.size());
      if (quoted) {
        host = named.empty() ? host : named;
      } else {
        say_host(named);
      }
      continue;
    }
    const char letter = text.front();
    text.remove_prefix(1);
    out += letter;
    if (letter == '`') {
      quoted = !quoted;
      if (!quoted) {
        say_host(std::exchange(host, {}));
      }
    }
  }
  return out;
}

void name_host_of_facts(JobModel& job) {
  if (std::all_of(job.facts.begin(), job.facts.end(),
                  [](const Fact& fact) { return fact.fields.contains(kHost); })) {
    return;  // a job of many nodes is asked once for each node
  }
  std::set<std::string> hosts(job.hosts.begin(), job.hosts.end());
  for (const auto& [host, numbers] : known_numbers(job)) {
    hosts.insert(host);
  }
  if (hosts.size() != 1 || hosts.begin()->empty()) {
    return;
  }
  for (Fact& fact : job.facts) {
    fact.fields.try_emplace(kHost, *hosts.begin());
  }
}

std::map<Rank, std::string> hosts_of_ranks(const JobModel& job) {
  std::map<Rank, std::string> hosts;
  std::set<Rank> twice;
  for (const Observation& look : job.observations) {
    for (const Process& process : look.processes) {
      if (!process.rank || process.role != Role::kRank || process.host.empty()) {
        continue;
      }
      const auto [known, fresh] = hosts.emplace(*process.rank, process.host);
      if (!fresh && known->second != process.host) {
        twice.insert(*process.rank);
      }
    }
  }
  std::erase_if(hosts, [&twice](const auto& one) { return twice.contains(one.first); });
  return hosts;
}

}  // namespace ddpdoctor::model
