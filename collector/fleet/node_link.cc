// SPDX-License-Identifier: Apache-2.0
#include "collector/fleet/node_link.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/host_name.h"
#include "base/text.h"
#include "collector/fleet/capture_size.h"
#include "collector/fleet/kept_recordings.h"
#include "collector/fleet/meeting_place.h"
#include "collector/fleet/subjects.h"
#include "collector/nodes/ask.h"
#include "collector/nodes/conversation.h"
#include "collector/nodes/messages.h"
#include "collector/recording/recording.h"

namespace ddpdoctor::fleet {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook{50};
constexpr milliseconds kShortest{100};    // least time between two messages
constexpr milliseconds kHeartbeat{500};   // at least one message in this time
constexpr double kBytesPerSecond = 2000;  // bytes per second and rank, at most
constexpr milliseconds kRetry{500};
constexpr milliseconds kLedFor{3000};       // after the last message of a collector
constexpr milliseconds kNobodyLeads{1000};  // then the node of rank 0 starts a collector
constexpr milliseconds kComes{5000};        // after the first call: a collector has started by then
constexpr milliseconds kUnasked{3000};      // the asker named no time: take the snapshot after this
constexpr milliseconds kForgotten{60000};   // a session without any further message is dropped
constexpr milliseconds kFarewell{8000};     // for the collector to fetch the last capture
constexpr std::size_t kMostSessions = 8;
constexpr double kLongestDelay = 10;  // seconds
constexpr std::size_t kPiece = std::size_t{256} << 10U;

std::string clock_text() {
  return fmt::format("{:.6f}", nodes::now_seconds());
}

std::int64_t ticks(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration_cast<milliseconds>(time.time_since_epoch()).count();
}

double delay_of(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::isfinite(value) ? std::clamp(value, 0.0, kLongestDelay) : 0;
}

/// "ping 3" → {"ping", "3"}
std::pair<std::string_view, std::string_view> two_words(std::string_view text) {
  text = base::trim(text);
  const std::size_t space = std::min(text.find(' '), text.size());
  return {text.substr(0, space), base::trim(text.substr(space))};
}

}  // namespace

NodeLink::NodeLink(std::string job, std::string spool, NodeServices services)
    : job_(job.empty() ? "" : transport::subject_word(job)),
      host_(base::host_name()),
      node_(transport::subject_word(host_ + "-" + nodes::new_session().substr(0, 6))),
      services_(std::move(services)),
      rings_(std::move(spool)),
      thread_([this] { work(); }) {}

NodeLink::~NodeLink() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool NodeLink::leads() const {
  return led_at_ != 0 && ticks(Clock::now()) - led_at_ < kLedFor.count();
}

bool NodeLink::awaited() const {
  return began_at_ != 0 && !leads() && ticks(Clock::now()) - began_at_ < kComes.count();
}

bool NodeLink::wants_look() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(look_wanted_, false);
}

void NodeLink::answer(const model::JobModel& job) {
  const double began = job.observations.empty() ? nodes::now_seconds() : job.observations[0].time;
  std::string capture = recording::save(without_old_calls(job));
  const std::scoped_lock lock(mutex_);
  capture_ = std::move(capture);
  capture_began_ = began;
}

void NodeLink::leave(const model::JobModel* job, int status) {
  std::optional<std::string> capture;
  if (job != nullptr) {
    capture = recording::save(without_old_calls(*job));
  }
  std::unique_lock lock(mutex_);
  left_ = true;
  last_ = std::move(capture);
  status_ = status;
  if (!reached_) {
    return;
  }
  if (!leads()) {
    changed_.wait_for(lock, kLook * 10, [this] { return last_sent_out_; });
    return;
  }
  const auto until = Clock::now() + kFarewell;
  while (!done_ && leads() && Clock::now() < until) {
    changed_.wait_for(lock, kLook);
  }
}

void NodeLink::work() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (transport_ == nullptr) {
        changed_.wait_for(lock, kLook, [this] { return stop_; });
      }
      if (stop_) {
        return;
      }
    }
    const auto now = Clock::now();
    const bool changed = rings_.read();
    if (!find_job() || !reach_server()) {
      continue;
    }
    if (changed) {
      next_send_ = std::min(next_send_, std::max(now, last_sent_ + kShortest));
    }
    if (const auto packet = transport_->next(kLook)) {
      hear(*packet);
      for (auto more = transport_->next(milliseconds(0)); more;
           more = transport_->next(milliseconds(0))) {
        hear(*more);
      }
    }
    publish_last();
    publish_answers();
    publish_marks(Clock::now());
    care_for_lead(Clock::now());
  }
}

/// The job's name and rendezvous address are known after the first call of any rank.
bool NodeLink::find_job() {
  const auto ranks = place_asked_ ? std::vector<RankMark>() : rings_.ranks();
  if (!ranks.empty()) {
    place_asked_ = true;
    began_at_ = ticks(Clock::now());
    place_ = meeting_place(static_cast<pid_t>(ranks.front().pid));
    if (job_.empty()) {
      job_ = transport::subject_word(place_.empty() ? "job" : place_);
    }
    if (ranks.front().rank == 0) {
      told_lead_ = true;
      services_.lead_node(place_);
    }
  }
  return !job_.empty();
}

bool NodeLink::reach_server() {
  if (transport_ != nullptr) {
    return true;
  }
  if (Clock::now() < next_try_) {
    return false;
  }
  auto connected = services_.connect(place_);
  next_try_ = Clock::now() + kRetry;
  if (!connected) {
    failing_since_ = failing_since_.value_or(Clock::now());
  }
  const bool patient = failing_since_ && Clock::now() - *failing_since_ <
                                             std::chrono::duration<double>(services_.patience);
  if (!connected && !patient && connected.error().what != complaint_) {
    complaint_ = connected.error().what;
    services_.complain(connected.error());
  }
  if (!connected || *connected == nullptr) {
    return false;
  }
  transport_ = std::move(*connected);
  (void)transport_->keep(subject("*", "marks.*"));
  (void)transport_->keep(subject("*", "last.*.*"));
  for (const std::string& word :
       {std::string("ask"), "to." + node_, std::string("lead"), std::string("verdict"),
        std::string("finding"), std::string("done")}) {
    (void)transport_->subscribe(subject(job_, word));
  }
  connected_at_ = Clock::now();
  reached_ = true;
  return true;
}

void NodeLink::hear(const transport::Packet& packet) {
  const std::string_view word = word_of(packet.subject, 2);
  if (word == "ask") {
    hear_ask(packet);
  } else if (word == "to") {
    hear_word(packet);
  } else if (word == "lead") {
    led_at_ = ticks(Clock::now());
  } else if (word == "verdict") {
    found_hang_ = packet.data == "hang";
  } else if (word == "finding" && !answered_.empty()) {
    keeps_finding_ = true;
    keep(answered_);
  } else if (word == "done") {
    done_ = true;  // leave() checks it soon
  }
}

void NodeLink::hear_ask(const transport::Packet& packet) {
  const std::string& session = packet.data;
  const bool sound = session.size() == nodes::new_session().size() &&
                     transport::subject_word(session) == session &&
                     packet.reply == subject(job_, "answer." + session + ".");
  const auto now = Clock::now();
  std::erase_if(sessions_, [now](const auto& s) { return now - s.second.asked > kForgotten; });
  if (!sound || sessions_.size() >= kMostSessions || sessions_.contains(session)) {
    return;
  }
  sessions_[session] = {.reply = packet.reply + node_, .look_at = {}, .asked = now};
  (void)transport_->publish(packet.reply + node_,
                            nodes::message_line(session, "hello", {clock_text(), host_, place_}),
                            {});
}

void NodeLink::hear_word(const transport::Packet& packet) {
  const auto [session, words] = two_words(packet.data);
  const auto found = sessions_.find(std::string(session));
  if (found == sessions_.end()) {
    return;
  }
  const auto [word, argument] = two_words(words);
  if (word == "ping") {
    (void)transport_->publish(
        found->second.reply,
        nodes::message_line(session, "pong", {std::string(argument), clock_text()}), {});
  } else if (word == "go" && !found->second.look_at) {
    found->second.look_at = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                               std::chrono::duration<double>(delay_of(argument)));
  }
}

/// Passes requests to the thread that captures, and sends the captures back.
void NodeLink::publish_answers() {
  const auto now = Clock::now();
  std::optional<std::string> capture;
  double began = 0;
  {
    const std::scoped_lock lock(mutex_);
    for (auto& [session, state] : sessions_) {
      const auto when = state.look_at.value_or(state.asked + kUnasked);
      if (!state.looking && now >= when) {
        state.looking = true;
        look_wanted_ = true;
      }
    }
    if (last_) {
      capture = last_;
      began = nodes::now_seconds();
    } else {
      capture = std::exchange(capture_, std::nullopt);
      began = capture_began_;
    }
  }
  for (auto state = sessions_.begin(); capture && state != sessions_.end();) {
    if (!state->second.looking) {
      ++state;
      continue;
    }
    const std::string& session = state->first;
    (void)transport_->publish(state->second.reply,
                              nodes::message_line(session, "began", {fmt::format("{:.6f}", began)}),
                              {});
    send_capture(state->second.reply, session, nodes::data_lines(session, *capture));
    answered_ = *capture;
    state = sessions_.erase(state);
  }
}

/// Sends lines in as few messages as possible.
void NodeLink::send_capture(const std::string& to, const std::string& session,
                            const std::string& lines) {
  std::size_t part = 0;
  for (std::size_t at = 0; at < lines.size();) {
    std::size_t end = std::min(at + kPiece, lines.size());
    end = end == lines.size() ? end : lines.rfind('\n', end) + 1;
    const std::string subject = session == kLastSession ? fmt::format("{}.{}", to, part++) : to;
    (void)transport_->publish(subject, std::string_view(lines).substr(at, end - at), {});
    at = end;
  }
}

/// Publishes the final capture once, where the server keeps it.
void NodeLink::publish_last() {
  {
    const std::scoped_lock lock(mutex_);
    if (!left_ || last_sent_out_) {
      return;
    }
  }
  const std::string session(kLastSession);
  if (last_) {
    send_capture(subject(job_, "last." + node_), session,
                 nodes::message_line(session, "hello", {clock_text(), host_, place_}) +
                     nodes::data_lines(session, *last_));
  }
  (void)transport_->publish(subject(job_, "marks." + node_), write_marks(marks()), {});
  if (last_ && !keeps_finding_) {
    keep(*last_);
  }
  const std::scoped_lock lock(mutex_);
  last_sent_out_ = true;
  changed_.notify_all();
}

/// The job does not depend on it: a server that keeps nothing is not reported.
void NodeLink::keep(const std::string& capture) {
  (void)keep_recording(*transport_, job_, marks(), capture);
}

NodeMarks NodeLink::marks() {
  NodeMarks out{.node = node_,
                .host = host_,
                .place = place_,
                .counter = ++counter_,
                .time = nodes::now_seconds(),
                .world_size = rings_.world_size(),
                .alarms = alarms_,
                .ended = false,
                .status = 0,
                .ranks = rings_.ranks()};
  const std::scoped_lock lock(mutex_);
  out.ended = left_;
  out.status = status_;
  return out;
}

void NodeLink::publish_marks(Clock::time_point now) {
  if (now < next_send_) {
    return;
  }
  const std::string text = write_marks(marks());
  (void)transport_->publish(subject(job_, "marks." + node_), text, {});
  // The larger the message, the less often it is sent.
  const double ranks = std::max(1.0, static_cast<double>(rings_.ranks().size()));
  const milliseconds fair(static_cast<std::int64_t>(1000.0 * static_cast<double>(text.size()) /
                                                    (kBytesPerSecond * ranks)));
  last_sent_ = now + std::max(fair, kShortest) - kShortest;
  next_send_ = now + kHeartbeat;
}

/// The node of rank 0 makes sure that a collector runs.
void NodeLink::care_for_lead(Clock::time_point now) {
  if (told_lead_ && !collects_ && !leads() && now - *connected_at_ > kNobodyLeads) {
    collects_ = true;
    services_.collect(job_);
  }
}

}  // namespace ddpdoctor::fleet
