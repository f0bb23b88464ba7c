// SPDX-License-Identifier: Apache-2.0
// Follows the marks of all nodes of a job, asks all of them to look when there is reason to, and
// hands over one job. It may come late, go and come again: the nodes and the server have what it
// missed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "collector/fleet/ask_fleet.h"
#include "collector/fleet/job_state.h"
#include "collector/model/job_model.h"
#include "collector/nodes/conversation.h"
#include "collector/transport/transport.h"

namespace ddpdoctor::fleet {

struct CollectOptions {
  std::string job{};  // empty = the only one that is heard
  bool elected =
      false;          // started by a node for want of another: gives way to one that people start
  bool once = false;  // look now, and that is all
  double wait = 0;    // seconds until a node must be heard; 0 = for ever
  Limits limits{};
  AskFleetOptions ask{};
};

/// What was made of a job.
struct Verdict {
  bool hang = false;      // nodes that end the job on a hang do so
  std::string finding{};  // as JSON, for who reads along; empty = none
};

/// What the collector's surroundings do for it.
struct CollectServices {
  std::function<Verdict(model::JobModel job, const Suspicion& why)> judge{};
  std::function<void(const base::Error& error)> complain = [](const base::Error&) {};
  /// Before all nodes are asked.
  std::function<void(const Suspicion& why)> notice = [](const Suspicion&) {};
  /// Some times a second.
  std::function<void(const JobState& state, const std::string& job, double now)> show =
      [](const JobState&, const std::string&, double) {};
  std::function<bool()> stop = [] { return false; };
};

class Collector {
 public:
  Collector(transport::Transport& transport, CollectOptions options, CollectServices services);

  /// Until the job has ended, or it is told to stop. Fails when there is no job, or several.
  base::Result<void> run();
  /// Takes what has come, for at most `limit`; for who only wants to see.
  void listen(std::chrono::milliseconds limit);
  /// Finds the job and begins to hear it.
  base::Result<void> begin();
  [[nodiscard]] const JobState& state() const {
    return state_;
  }
  [[nodiscard]] const std::string& job() const {
    return options_.job;
  }

 private:
  using Clock = std::chrono::steady_clock;

  base::Result<void> find_job();
  void hear(const transport::Packet& packet);
  void lead(double now);
  void check_hearing(double now);
  [[nodiscard]] bool gives_way(double now) const;
  void look(const Suspicion& why);
  std::vector<nodes::Answer> answers(const std::vector<std::string>& asked);
  [[nodiscard]] nodes::Answer answer_of_ended(const std::string& name, const NodeState& node) const;
  [[nodiscard]] nodes::Answer answer_of_silent(const NodeState& node, double now) const;
  [[nodiscard]] std::string shown_name(const std::string& name) const;
  void note_what_is_missing(model::JobModel& job, const Suspicion& why) const;

  transport::Transport& transport_;
  CollectOptions options_;
  CollectServices services_;
  bool job_was_named_;
  std::string id_;
  JobState state_;
  std::map<std::string, nodes::Conversation> last_;  // captures of ended nodes, by node
  std::map<std::string, nodes::Answer> ended_;       // the same, whole
  std::set<std::string> unanswered_;  // nodes that gave nothing when they were asked last
  double led_at_ = 0;                 // when we said that we collect
  double other_at_ = -1e9;            // when another collector said so
  bool deaf_ = false;
  bool split_said_ = false;
};

/// Seconds of a steady clock.
double steady_seconds();

}  // namespace ddpdoctor::fleet
