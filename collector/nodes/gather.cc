// SPDX-License-Identifier: Apache-2.0
#include "collector/nodes/gather.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/parallel.h"
#include "base/text.h"
#include "collector/imports/merge.h"
#include "collector/model/coverage.h"
#include "collector/model/host_pids.h"
#include "collector/recording/recording.h"
#include "collector/sources/processes/process_table.h"

namespace ddpdoctor::nodes {
namespace {

constexpr double kSmallDifference = 0.01;  // seconds; smaller clock differences are not corrected
constexpr double kEpoch = 1e9;             // seconds; smaller numbers are not times of day
constexpr std::size_t kMostHosts = 4;      // hosts named before a sentence

/// A node's capture with data from the conversation.
struct Part {
  std::string host;
  Answer answer;
  model::JobModel job;
};

void shift(std::optional<double>& time, double seconds) {
  if (time && *time > kEpoch) {
    *time += seconds;
  }
}

/// Uses the hosts' own names, unless two are equal.
void name_hosts(std::vector<Part>& parts) {
  std::map<std::string, int> count;
  for (const Part& part : parts) {
    ++count[part.answer.host];
  }
  for (Part& part : parts) {
    const bool own = !part.answer.host.empty() && count[part.answer.host] == 1;
    part.host = own ? part.answer.host : part.answer.node;
    part.job.hosts = {part.host};
    for (model::Observation& look : part.job.observations) {
      for (model::Process& process : look.processes) {
        process.host = part.host;
      }
    }
    for (model::Fact& fact : part.job.facts) {
      fact.fields.erase("host");
    }
    model::name_host_of_facts(part.job);
  }
}

/// The sentence is about ranks of other machines; merging removes it and must recognize its words.
bool is_about_elsewhere(const std::string& sentence) {
  return sentence.find(sources::kRanksHere) != std::string::npos ||
         std::any_of(model::kReasonsNotHere.begin(), model::kReasonsNotHere.end(),
                     [&sentence](std::string_view why) { return sentence.ends_with(why); });
}

using Sentences = std::vector<std::string> model::Coverage::*;

/// The sentences of all hosts, each once; names the hosts unless all have it.
std::vector<std::string> said_by(std::vector<Part>& parts, Sentences member) {
  std::map<std::string, std::vector<std::string>> who;
  std::vector<std::string> order;
  for (Part& part : parts) {
    std::vector<std::string> elsewhere;
    for (std::string& sentence : part.job.coverage.*member) {
      if (is_about_elsewhere(sentence)) {
        elsewhere.push_back(std::move(sentence));
        continue;
      }
      auto& hosts = who[sentence];
      if (hosts.empty()) {
        order.push_back(sentence);
      }
      hosts.push_back(part.host);
    }
    part.job.coverage.*member = std::move(elsewhere);
  }
  std::vector<std::string> out;
  for (const std::string& sentence : order) {
    const auto& hosts = who[sentence];
    out.push_back(hosts.size() == parts.size() ? sentence
                  : hosts.size() > kMostHosts
                      ? fmt::format("{} hosts: {}", hosts.size(), sentence)
                      : fmt::format("{}: {}", fmt::join(hosts, ", "), sentence));
  }
  return out;
}

std::string milliseconds(double seconds) {
  return seconds < 1 ? fmt::format("{:.0f} ms", seconds * 1000) : base::duration(seconds);
}

/// "3 of 4 nodes answered and looked within 12 ms of each other"
std::string moments(const std::vector<Part>& parts, std::size_t asked) {
  double first = 0;
  double last = 0;
  bool known = true;
  for (const Part& part : parts) {
    known = known && part.answer.looked;
    const double when = part.answer.looked.value_or(0);
    first = &part == &parts.front() ? when : std::min(first, when);
    last = &part == &parts.front() ? when : std::max(last, when);
  }
  std::string out = fmt::format("{} of {} nodes answered", parts.size(), asked);
  if (known && parts.size() > 1) {
    out += fmt::format(" and took their snapshots within {} of each other",
                       milliseconds(last - first));
  }
  return out;
}

/// Clock differences to the first node.
std::string clocks(const std::vector<Part>& parts) {
  const Part* most = nullptr;
  double apart = 0;
  const auto& first = parts.front().answer.clock;
  for (const Part& part : parts) {
    if (!part.answer.clock || !first) {
      return "the nodes' clocks could not be compared: the launcher gives them no input";
    }
    const double other = part.answer.clock->ahead - first->ahead;
    if (most == nullptr || std::abs(other) > std::abs(apart)) {
      most = &part;
      apart = other;
    }
  }
  if (parts.size() < 2 || std::abs(apart) < kSmallDifference) {
    return fmt::format("the nodes' clocks agree to {}", milliseconds(kSmallDifference));
  }
  return fmt::format("the clock of {} is {} {} that of {}", most->host,
                     milliseconds(std::abs(apart)), apart > 0 ? "ahead of" : "behind",
                     parts.front().host);
}

/// "10.0.0.1:29500 of 8, run7" → "10.0.0.1:29500": ranks with one rendezvous address are one job,
/// whatever their other settings.
std::string meeting_place(std::string_view job) {
  std::string_view place = job.substr(0, job.find(" of "));
  return std::string(base::trim(place));
}

base::Result<void> check_one_job(const std::vector<Part>& parts) {
  std::map<std::string, std::vector<std::string>> jobs;
  for (const Part& part : parts) {
    if (!part.answer.job.empty()) {
      jobs[meeting_place(part.answer.job)].push_back(part.host);
    }
  }
  if (jobs.size() < 2) {
    return {};
  }
  std::vector<std::string> list;
  for (const auto& [job, hosts] : jobs) {
    list.push_back(fmt::format("{} on {}", job, fmt::join(hosts, ", ")));
  }
  return base::failure(fmt::format("the nodes run different jobs: {}", fmt::join(list, "; ")),
                       "--job TEXT chooses one by a part of its address or command; if it is one "
                       "job whose nodes have "
                       "different settings, name its script: --job train.py");
}

base::Error nobody(const std::vector<Answer>& answers) {
  std::map<std::string, std::vector<std::string>> why;
  std::string hint;
  for (const Answer& answer : answers) {
    why[answer.problem.what].push_back(answer.node);
    hint = hint.empty() ? answer.problem.hint : hint;
  }
  std::vector<std::string> list;
  for (const auto& [what, nodes] : why) {
    list.push_back(nodes.size() > kMostHosts ? fmt::format("{} nodes: {}", nodes.size(), what)
                                             : fmt::format("{}: {}", fmt::join(nodes, ", "), what));
  }
  return {.what = fmt::format("no node gave an answer: {}", fmt::join(list, "; ")), .hint = hint};
}

/// The capture of an answer; an unreadable capture becomes the answer's problem.
std::optional<model::JobModel> read_one(Answer& answer) {
  if (!answer.capture) {
    return std::nullopt;
  }
  auto job = recording::load(*answer.capture, answer.node);
  answer.capture.reset();
  if (!job) {
    answer.problem = {.what = "its answer is not a capture: " + job.error().what, .hint = {}};
    return std::nullopt;
  }
  if (answer.clock && std::abs(answer.clock->ahead) > kSmallDifference + answer.clock->error) {
    shift_times(*job, -answer.clock->ahead);
  }
  return std::move(*job);
}

/// The captures of all answers. Reading them takes longer than all else with hundreds of nodes.
std::vector<Part> read(std::vector<Answer>& answers) {
  std::vector<std::optional<model::JobModel>> jobs(answers.size());
  base::in_parallel(answers.size(),
                    [&](std::size_t, std::size_t i) { jobs[i] = read_one(answers[i]); });
  std::vector<Part> parts;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (jobs[i]) {
      parts.push_back({.host = {}, .answer = answers[i], .job = std::move(*jobs[i])});
    }
  }
  return parts;
}

/// "node3: no answer within 20 s"
std::vector<std::string> silent(const std::vector<Answer>& answers) {
  std::vector<std::string> out;
  for (const Answer& answer : answers) {
    if (!answer.problem.what.empty()) {
      out.push_back(fmt::format("{}: {}", answer.node, answer.problem.what));
    }
  }
  return out;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

void shift_times(model::JobModel& job, double seconds) {
  for (model::Observation& look : job.observations) {
    look.time += seconds;
    for (model::Process& process : look.processes) {
      shift(process.start_time, seconds);
    }
  }
  for (model::CollectiveCall& call : job.collectives) {
    shift(call.time, seconds);
    shift(call.end_time, seconds);
  }
  for (model::Fact& fact : job.facts) {
    for (auto& [name, value] : fact.fields) {
      auto* time = std::get_if<double>(&value);
      if (time != nullptr && *time > kEpoch) {
        *time += seconds;
      }
    }
  }
}

base::Result<model::JobModel> gather(std::vector<Answer> answers, const GatherOptions& options) {
  const std::size_t asked = answers.size();
  std::vector<Part> parts = read(answers);
  if (parts.empty()) {
    return tl::make_unexpected(nobody(answers));
  }
  name_hosts(parts);
  if (!options.one_job) {
    if (auto one = check_one_job(parts); !one) {
      return tl::make_unexpected(one.error());
    }
  }
  model::Coverage said;
  said.observed = said_by(parts, &model::Coverage::observed);
  said.observed.insert(said.observed.begin(), {moments(parts, asked), clocks(parts)});
  said.unobserved = silent(answers);
  append(said.unobserved, options.unreachable);
  append(said.unobserved, said_by(parts, &model::Coverage::unobserved));
  said.warnings = said_by(parts, &model::Coverage::warnings);
  model::JobModel job = std::move(parts.front().job);
  for (auto part = parts.begin() + 1; part != parts.end(); ++part) {
    imports::merge(job, std::move(part->job));
  }
  append(said.observed, job.coverage.observed);
  append(said.unobserved, job.coverage.unobserved);
  append(said.warnings, job.coverage.warnings);
  base::drop_repeats(said.warnings);
  job.coverage.observed = std::move(said.observed);
  job.coverage.unobserved = std::move(said.unobserved);
  job.coverage.warnings = std::move(said.warnings);
  return job;
}

}  // namespace ddpdoctor::nodes
