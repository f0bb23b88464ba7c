// SPDX-License-Identifier: Apache-2.0
// Follows the progress marks of all nodes of a job, asks all nodes for a snapshot when there is a
// reason, and merges the answers into one job. A collector may start late, stop and restart: the
// nodes and the server keep what it missed.
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
  std::string job{};  // empty = the only job that is heard
  bool elected =
      false;  // started by a node because no collector ran: gives way to one that a person starts
  bool once = false;  // take one snapshot and return
  double wait = 0;    // seconds to wait for the first node; 0 = no limit
  Limits limits{};
  AskFleetOptions ask{};
};

/// The result of a diagnosis.
struct Verdict {
  bool hang = false;      // nodes that end the job on a hang end it now
  std::string finding{};  // as JSON, for other listeners; empty = none
};

/// Callbacks to the program that runs the collector.
struct CollectServices {
  std::function<Verdict(model::JobModel job, const Suspicion& why)> judge{};
  std::function<void(const base::Error& error)> complain = [](const base::Error&) {};
  /// Called before all nodes are asked.
  std::function<void(const Suspicion& why)> notice = [](const Suspicion&) {};
  /// Called several times a second.
  std::function<void(const JobState& state, const std::string& job, double now)> show =
      [](const JobState&, const std::string&, double) {};
  std::function<bool()> stop = [] { return false; };
};

class Collector {
 public:
  Collector(transport::Transport& transport, CollectOptions options, CollectServices services);

  /// Runs until the job has ended or a stop is requested. Fails when there is no job, or more than
  /// one.
  base::Result<void> run();
  /// Handles incoming messages for at most `limit`, without asking the nodes.
  void listen(std::chrono::milliseconds limit);
  /// Finds the job and subscribes to its messages.
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
  std::map<std::string, nodes::Answer> ended_;       // the same, complete
  std::set<std::string> unanswered_;                 // nodes that did not answer the last request
  std::string keeps_nothing_;                        // why the server keeps no messages
  double led_at_ = 0;                                // when this collector announced itself
  double other_at_ = -1e9;                           // when another collector announced itself
  bool deaf_ = false;
  bool split_said_ = false;
};

/// Seconds of the steady clock.
double steady_seconds();

}  // namespace ddpdoctor::fleet
