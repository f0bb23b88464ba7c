// SPDX-License-Identifier: Apache-2.0
#include "collector/fleet/collect.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "collector/fleet/subjects.h"
#include "collector/model/rank_set.h"
#include "collector/nodes/gather.h"
#include "wire/events.h"

namespace ddpdoctor::fleet {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick{20};
constexpr double kLeadEvery = 0.5;  // seconds
// Seconds; gives way to a collector that was heard within this time.
constexpr double kGivesWay = 3;
// Seconds before a single snapshot: every running collector has sent a message by then.
constexpr double kListens = 1.5;
constexpr double kDiscovery = 1.5;    // seconds in which every node is heard
constexpr std::size_t kBatch = 4096;  // messages between two checks of the clock
// Seconds; the error assumed for a clock difference that was not measured.
constexpr double kClockError = 0.05;

/// "ranks 4-5 had last called all_reduce #41"
std::string newest_calls(const NodeState& node) {
  const GroupMark* newest = nullptr;
  for (const RankMark& rank : node.marks.ranks) {
    for (const GroupMark& group : rank.groups) {
      newest =
          newest == nullptr || group.hashes.sequence > newest->hashes.sequence ? &group : newest;
    }
  }
  if (newest == nullptr) {
    return {};
  }
  const char* const name = wire::operation_name(static_cast<wire::Operation>(newest->operation));
  return fmt::format("; its newest known call is {} #{}", name == nullptr ? "a call" : name,
                     newest->hashes.sequence);
}

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Collector::Collector(transport::Transport& transport, CollectOptions options,
                     CollectServices services)
    : transport_(transport),
      options_(std::move(options)),
      services_(std::move(services)),
      job_was_named_(!options_.job.empty()),
      id_(nodes::new_session()),
      state_(options_.limits) {}

base::Result<void> Collector::find_job() {
  if (!options_.job.empty()) {
    options_.job = transport::subject_word(options_.job);
    return {};
  }
  (void)transport_.subscribe(subject("*", "marks.*"));
  std::set<std::string> jobs;
  const double began = steady_seconds();
  std::optional<double> first;
  while (!services_.stop() && (!first || steady_seconds() - *first < kDiscovery)) {
    if (const auto packet = transport_.next(kTick); packet && read_marks(packet->data)) {
      jobs.insert(std::string(word_of(packet->subject, 1)));
      first = first.value_or(steady_seconds());
    }
    if (!first && options_.wait > 0 && steady_seconds() - began > options_.wait) {
      return base::failure(fmt::format("no job was heard for {}", base::duration(options_.wait)),
                           "on each node: ddpdoctor run --nats URL -- torchrun …; a job that has "
                           "ended is named with "
                           "--job NAME");
    }
  }
  if (jobs.size() > 1) {
    return base::failure(fmt::format("{} jobs are heard: {}", jobs.size(), fmt::join(jobs, ", ")),
                         "choose one with --job NAME");
  }
  options_.job = jobs.empty() ? "" : *jobs.begin();
  return {};
}

base::Result<void> Collector::begin() {
  if (auto found = find_job(); !found) {
    return found;
  }
  if (auto heard = transport_.subscribe(subject(options_.job, ">")); !heard) {
    return heard;
  }
  for (const char* const pattern : {"marks.*", "last.*.*", "finding"}) {
    if (auto kept = transport_.keep(subject("*", pattern)); !kept) {
      keeps_nothing_ = kept.error().what;
    }
  }
  for (const char* const pattern : {"last.*.*", "marks.*"}) {
    (void)transport_.replay(subject(options_.job, pattern));
  }
  return {};
}

base::Result<void> Collector::run() {
  if (auto began = begin(); !began) {
    return began;
  }
  const double began = steady_seconds();
  while (!services_.stop()) {
    listen(kTick);
    const double now = steady_seconds();
    check_hearing(now);
    if (gives_way(now)) {
      if (state_.all_ended()) {
        return {};
      }
      continue;
    }
    lead(now);
    services_.show(state_, options_.job, now);
    if (options_.once && !state_.nodes().empty() && now - began > kListens) {
      look({.reason = Reason::kStill, .text = "a snapshot was asked for"});
      return {};
    }
    if (options_.wait > 0 && state_.nodes().empty() && now - began > options_.wait) {
      return base::failure(fmt::format("no node of job {} was heard for {}", options_.job,
                                       base::duration(options_.wait)),
                           keeps_nothing_.empty()
                               ? std::string()
                               : keeps_nothing_ + "; nodes that have ended are unknown");
    }
    const auto why = options_.once ? std::nullopt : state_.suspicion(now);
    if (why) {
      look(*why);
    }
    if (why && why->reason == Reason::kEnded) {
      (void)transport_.publish(subject(options_.job, "done"), id_, {});
      return {};
    }
  }
  return {};
}

void Collector::listen(milliseconds limit) {
  auto packet = transport_.next(limit);
  for (std::size_t i = 0; packet && i < kBatch; ++i) {
    hear(*packet);
    packet = transport_.next(milliseconds(0));
  }
  if (packet) {
    hear(*packet);
  }
}

void Collector::hear(const transport::Packet& packet) {
  const std::string_view word = word_of(packet.subject, 2);
  const std::string node(word_of(packet.subject, 3));
  if (word == "marks") {
    auto marks = read_marks(packet.data);
    if (marks && marks->node == node && word_of(packet.subject, 1) == options_.job) {
      state_.hear(std::move(*marks), steady_seconds(),
                  packet.kept ? std::nullopt : std::optional(nodes::now_seconds()));
    }
  } else if (word == "last" && !ended_.contains(node)) {
    auto& talk = last_.try_emplace(node, node, std::string(kLastSession), [](const std::string&) {})
                     .first->second;
    nodes::Lines lines;
    lines.feed(packet.data, [&talk](std::string_view line) { talk.hear(line); });
    if (talk.over()) {
      ended_[node] = talk.take();
      last_.erase(node);
    }
  } else if (word == "lead" && packet.data.starts_with(id_) == false) {
    other_at_ = packet.data.ends_with("named") ? steady_seconds() : other_at_;
  }
}

bool Collector::gives_way(double now) const {
  return options_.elected && now - other_at_ < kGivesWay;
}

void Collector::lead(double now) {
  if (now - led_at_ >= kLeadEvery) {
    led_at_ = now;
    (void)transport_.publish(subject(options_.job, "lead"),
                             id_ + (options_.elected ? " elected" : " named"), {});
    const std::string places = job_was_named_ ? std::string() : state_.other_job();
    if (!places.empty() && !split_said_) {
      split_said_ = true;
      services_.complain({.what = "nodes of different jobs share one name: " + places,
                          .hint = "give each job a name of its own: run --job NAME"});
    }
  }
}

/// While the server is unavailable, no message arrives; no node is reported as silent then.
void Collector::check_hearing(double now) {
  const bool connected = transport_.connected();
  if (!connected && !deaf_) {
    services_.complain({.what = "the connection to the NATS server is lost; the job goes on, and "
                                "ddpdoctor waits for the server",
                        .hint = {}});
  }
  if (!connected || deaf_) {
    state_.was_deaf(now);
  }
  deaf_ = !connected;
}

/// The host's name, unless another node has the same.
std::string Collector::shown_name(const std::string& name) const {
  const auto node = state_.nodes().find(name);
  const auto others = [&](const auto& other) {
    return other.first != name && other.second.marks.host == node->second.marks.host;
  };
  const bool alone = node != state_.nodes().end() && !node->second.marks.host.empty() &&
                     std::none_of(state_.nodes().begin(), state_.nodes().end(), others);
  return base::printable(alone ? node->second.marks.host : name);
}

nodes::Answer Collector::answer_of_ended(const std::string& name, const NodeState& node) const {
  const auto found = ended_.find(name);
  if (found == ended_.end()) {
    return {.node = node.marks.host,
            .host = node.marks.host,
            .job = node.marks.place,
            .clock = {},
            .looked = {},
            .capture = {},
            .problem = {.what = "its part of the job has ended without a capture", .hint = {}}};
  }
  return found->second;
}

nodes::Answer Collector::answer_of_silent(const NodeState& node, double now) const {
  return {.node = base::printable(node.marks.host),
          .host = {},
          .job = {},
          .clock = {},
          .looked = {},
          .capture = {},
          .problem = {.what = fmt::format("no word from it for {}{}",
                                          base::duration(now - node.heard), newest_calls(node)),
                      .hint = {}}};
}

/// Answers of the nodes that were asked; for the others, what is known already.
std::vector<nodes::Answer> Collector::answers(const std::vector<std::string>& asked) {
  const auto others = [this](const transport::Packet& packet) {
    hear(packet);
    lead(steady_seconds());
  };
  const auto is_silent = [this](const std::string& name) {
    const auto node = state_.nodes().find(name);
    return node != state_.nodes().end() && state_.is_silent(node->second, steady_seconds());
  };
  auto out = ask_fleet(transport_, options_.job, asked, options_.ask, others, is_silent);
  const double now = steady_seconds();
  unanswered_.clear();
  for (nodes::Answer& answer : out) {
    const std::string name = answer.node;
    const auto node = state_.nodes().find(name);
    // A node that ended while it was asked has left its last capture.
    if (!answer.capture && ended_.contains(name)) {
      answer = ended_[name];
    } else if (!answer.capture && node != state_.nodes().end() &&
               state_.is_silent(node->second, now)) {
      answer = answer_of_silent(node->second, now);
    }
    if (!answer.capture) {
      unanswered_.insert(name);
    }
    answer.node = shown_name(name);
  }
  for (const auto& [name, node] : state_.nodes()) {
    if (std::find(asked.begin(), asked.end(), name) != asked.end()) {
      continue;
    }
    out.push_back(node.marks.ended ? answer_of_ended(name, node) : answer_of_silent(node, now));
    out.back().node = shown_name(name);
    if (!out.back().capture) {
      unanswered_.insert(name);
    }
    if (node.clock_known) {
      out.back().clock = nodes::Clock{.ahead = node.ahead, .error = kClockError};
    }
  }
  return out;
}

void Collector::look(const Suspicion& why) {
  services_.notice(why);
  std::vector<std::string> asked;
  const double now = steady_seconds();
  for (const auto& [name, node] : state_.nodes()) {
    if (!node.marks.ended && !state_.is_silent(node, now)) {
      asked.push_back(name);
    }
  }
  auto all = answers(asked);
  // A dead node is often noticed here: the others stop first. The diagnosis need not be awaited.
  if (const auto silent = state_.silence(steady_seconds())) {
    services_.notice(*silent);
  }
  auto job = nodes::gather(std::move(all), {.one_job = job_was_named_, .unreachable = {}});
  if (!job) {
    services_.complain(job.error());
    return;
  }
  note_what_is_missing(*job, why);
  const Verdict verdict = services_.judge(std::move(*job), why);
  if (!verdict.finding.empty()) {
    (void)transport_.publish(subject(options_.job, "finding"), verdict.finding, {});
  }
  if (verdict.hang) {
    (void)transport_.publish(subject(options_.job, "verdict"), "hang", {});
  }
}

void Collector::note_what_is_missing(model::JobModel& job, const Suspicion& why) const {
  model::RankSet unheard;
  for (const int rank : state_.unheard_ranks()) {
    unheard.insert(rank);
  }
  model::RankSet silent;
  for (const std::string& name : unanswered_) {
    const auto node = state_.nodes().find(name);
    for (std::size_t i = 0; node != state_.nodes().end() && i < node->second.marks.ranks.size();
         ++i) {
      silent.insert(node->second.marks.ranks[i].rank);
    }
  }
  job.coverage.unobserved_ranks = job.coverage.unobserved_ranks.united(unheard).united(silent);
  if (!unheard.empty()) {
    job.coverage.unobserved.push_back(fmt::format("{}: no node has reported {}", unheard.said(),
                                                  unheard.size() == 1 ? "it" : "them"));
  }
  job.coverage.observed.push_back(fmt::format("all nodes were asked because {}", why.text));
  if (!keeps_nothing_.empty()) {
    job.coverage.warnings.push_back(keeps_nothing_ +
                                    "; nodes that ended before this collector started are unknown");
  }
  if (transport_.dropped() > 0) {
    job.coverage.warnings.push_back(
        fmt::format("{} messages of nodes came faster than they were read", transport_.dropped()));
  }
}

}  // namespace ddpdoctor::fleet
