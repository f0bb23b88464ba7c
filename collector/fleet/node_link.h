// SPDX-License-Identifier: Apache-2.0
// The node's side of `run --nats`: publishes the progress of its ranks and sends its capture to
// collectors that ask. Runs in its own thread: an unresponsive server blocks no other work, and a
// slow capture does not silence the node.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "collector/fleet/rank_marks.h"
#include "collector/model/job_model.h"
#include "collector/monitor/company.h"
#include "collector/transport/transport.h"

namespace ddpdoctor::fleet {

/// Callbacks to the program that runs the node.
struct NodeServices {
  /// Connects to the server. `place` is the rendezvous address of the ranks ("ADDRESS:PORT"; empty
  /// = not known yet). Returns an empty pointer for "not yet".
  std::function<base::Result<std::unique_ptr<transport::Transport>>(const std::string& place)>
      connect{};
  /// Called on the node of rank 0; its ranks meet at `place`.
  std::function<void(const std::string& place)> lead_node = [](const std::string&) {};
  /// Called on the node of rank 0 when no collector runs: start one.
  std::function<void(const std::string& job)> collect = [](const std::string&) {};
  /// Seconds in which a missing server is not an error.
  double patience = 0;
  /// Reports each error once to the user.
  std::function<void(const base::Error& error)> complain = [](const base::Error&) {};
};

class NodeLink : public monitor::Company {
 public:
  /// An empty `job` means: derive the name from the rendezvous address.
  NodeLink(std::string job, std::string spool, NodeServices services);
  NodeLink(const NodeLink&) = delete;
  NodeLink& operator=(const NodeLink&) = delete;
  NodeLink(NodeLink&&) = delete;
  NodeLink& operator=(NodeLink&&) = delete;
  ~NodeLink() override;

  [[nodiscard]] bool leads() const override;
  [[nodiscard]] bool awaited() const override;
  bool wants_look() override;
  [[nodiscard]] bool found_hang() const override {
    return found_hang_;
  }
  void alarm() override {
    ++alarms_;
  }

  /// Supplies this node's part of the job for those who asked.
  void answer(const model::JobModel& job);
  /// The job has ended here: publishes the last capture (null = none) and waits some seconds for a
  /// collector to fetch it.
  void leave(const model::JobModel* job, int status);

 private:
  using Clock = std::chrono::steady_clock;

  /// A collector that asked, and what it still has to get.
  struct Session {
    std::string reply;
    std::optional<Clock::time_point> look_at;  // when the collector set a time
    Clock::time_point asked;
    bool looking = false;
  };

  void work();
  bool find_job();
  bool reach_server();
  void hear(const transport::Packet& packet);
  void hear_ask(const transport::Packet& packet);
  void hear_word(const transport::Packet& packet);
  void publish_marks(Clock::time_point now);
  void publish_answers();
  void publish_last();
  void send_capture(const std::string& to, const std::string& session, const std::string& lines);
  void keep(const std::string& capture);
  void care_for_lead(Clock::time_point now);
  [[nodiscard]] NodeMarks marks();

  std::string job_;  // a subject word; empty = not known yet
  const std::string host_;
  const std::string node_;
  NodeServices services_;
  RankMarks rings_;
  std::unique_ptr<transport::Transport> transport_;
  std::string place_;
  std::uint64_t counter_ = 0;
  std::optional<Clock::time_point> connected_at_;
  Clock::time_point next_try_{};
  Clock::time_point last_sent_{};
  Clock::time_point next_send_{};
  std::string complaint_;
  std::string answered_;  // the newest capture that a collector got
  bool keeps_finding_ = false;
  std::map<std::string, Session> sessions_;
  bool place_asked_ = false;
  std::optional<Clock::time_point> failing_since_;
  bool told_lead_ = false;
  bool collects_ = false;

  std::atomic<std::int64_t> led_at_{0};    // steady clock, when a collector was heard
  std::atomic<std::int64_t> began_at_{0};  // steady clock, when a rank made its first call
  std::atomic<bool> reached_{false};
  std::atomic<bool> found_hang_{false};
  std::atomic<std::uint32_t> alarms_{0};
  std::atomic<bool> done_{false};

  std::mutex mutex_;  // protects the members below
  std::condition_variable changed_;
  bool look_wanted_ = false;
  std::optional<std::string> capture_;  // taken, not sent yet
  double capture_began_ = 0;
  bool left_ = false;                // the node's part has ended
  std::optional<std::string> last_;  // the capture of the end
  int status_ = 0;
  bool last_sent_out_ = false;
  bool stop_ = false;

  std::thread thread_;  // last member, because it uses all the others
};

}  // namespace ddpdoctor::fleet
