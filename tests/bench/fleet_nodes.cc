// SPDX-License-Identifier: Apache-2.0
// Simulates all nodes of a large job with a real nats-server: it publishes marks at the rate of
// real nodes, and captures when a collector requests them. Started by tests/bench/fleet_scale.py.
//
//   fleet_nodes URL JOB NODES RANKS_EACH stall|mismatch|dead|none SECONDS
//
// After SECONDS the fault happens and "fault TIME" is printed; the program ends when its stdin is
// closed.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <poll.h>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "collector/fleet/subjects.h"
#include "collector/nodes/conversation.h"
#include "collector/nodes/messages.h"
#include "collector/recording/recording.h"
#include "collector/transport/nats.h"
#include "tests/support/fleet_story.h"

namespace {

using namespace ddpdoctor;  // NOLINT(google-build-using-namespace)
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kCallsPerSecond = 50;
constexpr std::size_t kThreads = 6;
constexpr std::size_t kPiece = std::size_t{256} << 10U;

struct Fault {
  std::string kind;
  int rank = 0;  // faulty
};

sources::CallSignature signature(std::uint32_t sequence, bool odd) {
  sources::CallSignature call;
  call.sequence = sequence;
  call.operation =
      static_cast<std::uint8_t>(odd ? wire::Operation::kBroadcast : wire::Operation::kAllReduce);
  call.count = 1024;
  return call;
}

/// The state of the running job: all ranks have made `calls`, and the faulty rank differs after the
/// fault.
class Play {
 public:
  Play(int nodes, int ranks, Fault fault)
      : nodes_(nodes), ranks_(ranks), fault_(std::move(fault)) {}

  void make_calls(std::uint32_t calls) {
    for (std::uint32_t i = calls_ + 1; i <= calls && !faulty_; ++i) {
      good_.add(signature(i, false));
      guilty_.add(signature(i, false));
      calls_ = i;
    }
  }

  void fail() {
    faulty_ = true;
    ++calls_;
    good_.add(signature(calls_, false));
    if (fault_.kind == "mismatch") {
      guilty_.add(signature(calls_, true));
    }
  }

  [[nodiscard]] bool dead(int node) const {
    return faulty_ && fault_.kind == "dead" && node == fault_.rank / ranks_;
  }

  [[nodiscard]] std::string marks(int node, std::uint64_t counter) const {
    fleet::NodeMarks out;
    out.node = name(node);
    out.host = name(node);
    out.place = "head:29500";
    out.counter = counter;
    out.time = nodes::now_seconds();
    out.world_size = nodes_ * ranks_;
    for (int i = 0; i < ranks_; ++i) {
      const int rank = node * ranks_ + i;
      const fleet::Hashes& hashes = (rank == fault_.rank ? guilty_ : good_).hashes();
      fleet::RankMark mark{.rank = rank,
                           .pid = 1000U + static_cast<std::uint32_t>(i),
                           .start_ticks = 1,
                           .collectives = hashes.sequence,
                           .lost = 0,
                           .ended = false,
                           .groups = {}};
      for (const char* const group : {"0", "1", "2"}) {
        mark.groups.push_back({.group = group,
                               .size = nodes_ * ranks_,
                               .completed = hashes.sequence - 1,
                               .operation = 1,
                               .hashes = hashes});
      }
      out.ranks.push_back(std::move(mark));
    }
    return fleet::write_marks(out);
  }

  [[nodiscard]] std::string capture(int node) const {
    model::JobModel job;
    job.world_size = nodes_ * ranks_;
    job.hosts = {name(node)};
    job.progress = model::Progress::kStill;
    job.groups.push_back({.id = "0", .name = "default_pg", .backend = "nccl", .ranks = {}});
    for (int rank = 0; rank < nodes_ * ranks_; ++rank) {
      job.groups.front().ranks.push_back(rank);
    }
    job.observations.resize(2);
    for (std::size_t look = 0; look < 2; ++look) {
      job.observations[look].time = nodes::now_seconds() - 0.5 * (1 - static_cast<double>(look));
      for (int i = 0; i < ranks_; ++i) {
        job.observations[look].processes.push_back(process(node, i));
      }
    }
    for (int i = 0; i < ranks_; ++i) {
      add_calls(node * ranks_ + i, job);
    }
    return recording::save(job);
  }

  static std::string name(int node) {
    return fmt::format("node{:03}", node);
  }

 private:
  [[nodiscard]] bool guilty(int rank) const {
    return faulty_ && rank == fault_.rank && fault_.kind != "dead";
  }

  [[nodiscard]] model::Process process(int node, int index) const {
    const int rank = node * ranks_ + index;
    model::Process out;
    out.host = name(node);
    out.pid = 1000 + index;
    out.rank = rank;
    out.role = model::Role::kRank;
    out.state = 'S';
    out.python_version = "3.11";
    for (std::size_t i = 0; i < kThreads; ++i) {
      model::Thread& thread = out.threads.emplace_back();
      thread.tid = out.pid * 10 + static_cast<int>(i);
      thread.name = i == 0 ? "python" : fmt::format("pt_worker_{}", i);
      thread.state = 'S';
      thread.run_count = 7;
      if (i == 0) {
        thread.frames = frames(guilty(rank) && fault_.kind == "stall");
      }
    }
    return out;
  }

  static std::vector<model::Frame> frames(bool elsewhere) {
    std::vector<model::Frame> out;
    const auto add = [&out](const char* function, const char* file, int line) {
      model::Frame& frame = out.emplace_back();
      frame.language = model::Language::kPython;
      frame.function = function;
      frame.file = file;
      frame.line = line;
    };
    if (elsewhere) {
      add("evaluate", "/job/train.py", 61);
    } else {
      add("all_reduce", "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py",
          2501);
      add("step", "/job/train.py", 88);
    }
    add("main", "/job/train.py", 104);
    add("<module>", "/job/train.py", 110);
    return out;
  }

  void add_calls(int rank, model::JobModel& job) const {
    const std::uint32_t last = guilty(rank) && fault_.kind == "stall" ? calls_ - 1 : calls_;
    for (std::uint32_t n = last > 4 ? last - 4 : 1; n <= last; ++n) {
      model::CollectiveCall call;
      call.rank = rank;
      call.group = "0";
      call.sequence = n;
      const bool odd = guilty(rank) && n == calls_ && fault_.kind == "mismatch";
      call.operation = odd ? "broadcast" : "all_reduce";
      call.count = 1024;
      call.dtype = "float32";
      call.state = n < calls_ ? model::CallState::kCompleted : model::CallState::kEnqueued;
      call.time = nodes::now_seconds() - 3;
      call.call_site = {.file = "/job/train.py", .line = odd ? 61 : 88, .function = "step"};
      job.collectives.push_back(std::move(call));
    }
  }

  int nodes_;
  int ranks_;
  Fault fault_;
  std::uint32_t calls_ = 0;
  bool faulty_ = false;
  fleet::Fingerprint good_;
  fleet::Fingerprint guilty_;
};

/// Answers requests for captures in the name of all nodes.
class Answers {
 public:
  Answers(transport::Transport& transport, std::string job, const Play& play,
          std::vector<std::string> captures)
      : transport_(transport),
        job_(std::move(job)),
        play_(play),
        captures_(std::move(captures)),
        nodes_(static_cast<int>(captures_.size())) {}

  void hear(const transport::Packet& packet) {
    const std::string_view word = fleet::word_of(packet.subject, 2);
    if (word == "ask") {
      for (int node = 0; node < nodes_; ++node) {
        say(node, packet.data, "hello", {time(), Play::name(node), "head:29500"});
      }
    } else if (word == "to") {
      const int node = std::atoi(packet.subject.substr(packet.subject.size() - 3).c_str());
      const std::size_t space = packet.data.find(' ');
      const std::string session = packet.data.substr(0, space);
      const std::string words = packet.data.substr(space + 1);
      if (words.starts_with("ping ")) {
        say(node, session, "pong", {words.substr(5, words.find('\n') - 5), time()});
      } else if (words.starts_with("go ")) {
        give(node, session);
      }
    }
  }

 private:
  static std::string time() {
    return fmt::format("{:.6f}", nodes::now_seconds());
  }

  void say(int node, const std::string& session, std::string_view word,
           const std::vector<std::string>& arguments) {
    if (!play_.dead(node)) {
      (void)transport_.publish(
          fleet::subject(job_, fmt::format("answer.{}.{}", session, Play::name(node))),
          nodes::message_line(session, word, arguments), {});
    }
  }

  void give(int node, const std::string& session) {
    if (play_.dead(node)) {
      return;
    }
    say(node, session, "began", {time()});
    const std::string lines = nodes::data_lines(session, captures_[static_cast<std::size_t>(node)]);
    for (std::size_t at = 0; at < lines.size();) {
      std::size_t end = std::min(at + kPiece, lines.size());
      end = end == lines.size() ? end : lines.rfind('\n', end) + 1;
      (void)transport_.publish(
          fleet::subject(job_, fmt::format("answer.{}.{}", session, Play::name(node))),
          std::string_view(lines).substr(at, end - at), {});
      at = end;
    }
  }

  transport::Transport& transport_;
  std::string job_;
  const Play& play_;
  std::vector<std::string> captures_;
  int nodes_;
};

/// The captures of all nodes after the fault. Made in advance: real nodes capture on processors of
/// their own.
std::vector<std::string> captures_of(Play play, int nodes, std::uint32_t calls) {
  play.make_calls(calls);
  play.fail();
  std::vector<std::string> out;
  for (int node = 0; node < nodes; ++node) {
    out.push_back(play.capture(node));
  }
  return out;
}

bool input_ended() {
  pollfd input{.fd = 0, .events = POLLIN, .revents = 0};
  return ::poll(&input, 1, 0) > 0;
}

}  // namespace

int main(int count, char** words) {
  if (count != 7) {
    return 2;
  }
  const std::string job = words[2];
  const int nodes = std::atoi(words[3]);
  const int ranks = std::atoi(words[4]);
  const double fault_at = std::atof(words[6]);
  Play play(nodes, ranks, {.kind = words[5], .rank = nodes * ranks * 2 / 3});
  auto connected = transport::connect_to_nats({.url = words[1]}, "fleet_nodes");
  if (!connected) {
    fmt::print(stderr, "{}\n", connected.error().what);
    return 3;
  }
  transport::Transport& transport = **connected;
  for (const char* const word : {"ask", "to.*"}) {
    (void)transport.subscribe(fleet::subject(job, word));
  }
  (void)transport.keep(fleet::subject("*", "marks.*"));
  const auto last_call = static_cast<std::uint32_t>(fault_at * kCallsPerSecond);
  Answers answers(transport, job, play, captures_of(play, nodes, last_call));
  const auto began = Clock::now();
  std::uint64_t round = 0;
  std::uint64_t sent = 0;
  bool faulty = false;
  while (!input_ended()) {
    const double now = std::chrono::duration<double>(Clock::now() - began).count();
    play.make_calls(static_cast<std::uint32_t>(now * kCallsPerSecond));
    if (!faulty && now >= fault_at && std::string(words[5]) != "none") {
      faulty = true;
      play.fail();
      fmt::print("fault {:.3f}\n", nodes::now_seconds());
      (void)std::fflush(stdout);
    }
    ++round;
    for (int node = 0; node < nodes; ++node) {
      if (!play.dead(node)) {
        const std::string marks = play.marks(node, round);
        sent += marks.size();
        (void)transport.publish(fleet::subject(job, "marks." + Play::name(node)), marks, {});
      }
    }
    const auto next = began + std::chrono::milliseconds(100) * round;
    do {
      if (const auto packet = transport.next(std::chrono::milliseconds(5))) {
        answers.hear(*packet);
      }
    } while (Clock::now() < next);
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  fmt::print("sent {:.0f} bytes a second and rank, {:.1f} rounds a second\n",
             static_cast<double>(sent) / seconds / nodes / ranks,
             static_cast<double>(round) / seconds);
  return 0;
}
