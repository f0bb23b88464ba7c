// SPDX-License-Identifier: Apache-2.0
// Builds a JobModel for tests from short statements:
//
//   const auto hung = job().ranks(4)
//       .source("/srv/train.py", R"(...)")
//       .stack(kAll, "py:backward@torch/_tensor.py:581 | py:step@/srv/train.py:8")
//       .stack(2, "py:barrier@torch/distributed/distributed_c10d.py:4830 |
//       py:evaluate@/srv/train.py~dist.barrier()") .all_reduce(kAll, 1).all_reduce({0, 1, 3}, 2)
//       .build();
//
// By default there are two snapshots, five seconds apart, between which nothing moved. Later
// statements about a rank replace earlier ones. Stacks are written innermost frame first; a frame
// is py:FUNCTION@FILE:LINE            or  py:FUNCTION@FILE~TEXT   the first line of that source
// which contains TEXT py:FUNCTION{group=0; src=1}@…    with locals native:FUNCTION or
// native:FUNCTION@MODULE and frames are separated by " | ".
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::tests {

/// Every rank of the job.
struct Everyone {};
inline constexpr Everyone kAll;

/// The ranks that a statement is about: kAll, 2, {0, 1, 3} or a RankSet.
class Who {
 public:
  Who(Everyone) : all_(true) {}
  Who(model::Rank rank) : ranks_{rank} {}
  Who(std::initializer_list<model::Rank> ranks) : ranks_(ranks) {}
  Who(model::RankSet ranks) : ranks_(std::move(ranks)) {}

  [[nodiscard]] model::RankSet among(int world_size) const;

 private:
  model::RankSet ranks_;
  bool all_ = false;
};

/// One thread. `stack` as above; tid 0 = the next unused one of its process.
struct ThreadStory {
  std::string stack;
  std::string name = "python";
  char state = 'S';
  std::string wchan = {};
  std::optional<bool> gil = {};
  std::optional<model::WaitsOn> waits_on = {};
  pid_t tid = 0;
  bool moved = false;  // was elsewhere in the first snapshot
};

/// A process that is not a rank; `threads` has the main thread first. pid 0 = the next unused one.
struct ProcessStory {
  model::Role role = model::Role::kOther;
  std::optional<model::Rank> rank = {};  // the rank it serves
  pid_t pid = 0;
  pid_t ppid = 0;  // 0 = the rank's process, else the launcher
  std::vector<std::string> command = {};
  char state = 'S';
  std::string wchan = {};
  std::optional<model::Exit> exit = {};
  std::vector<ThreadStory> threads = {};
};

/// One call; absent fields are unknown. `site` is the user's frames, innermost first:
/// "step@/srv/train.py:8 | main@/srv/train.py:30".
struct CallStory {
  std::string operation;
  std::int64_t sequence = 1;
  std::string group = "0";
  std::string site = {};
  std::optional<std::int64_t> count = {};
  std::optional<std::vector<std::int64_t>> shape = {};
  std::string dtype = {};
  std::string reduce_op = {};
  std::optional<model::Rank> root = {};
  std::optional<model::Rank> peer = {};
  std::optional<std::vector<std::int64_t>> splits = {};
  /// Absent: completed if every member of the group (for send/recv: the peer) has the call, else
  /// started.
  std::optional<model::CallState> state = {};
  std::optional<double> time = {};
};

class JobBuilder {
 public:
  /// A world of this size on gloo: rank N is pid_of(N), a child of the launcher; all are in the
  /// group "0" (default_pg).
  JobBuilder& ranks(int world_size);
  JobBuilder& backend(std::string name);
  JobBuilder& group(std::string id, std::vector<model::Rank> members, std::string name = {});

  /// The main thread's stack.
  JobBuilder& stack(const Who& who, std::string text);
  /// The main thread's stack in the first snapshot, if it was different (the thread moved).
  JobBuilder& stack_before(const Who& who, std::string text);
  /// A main thread with one user frame.
  JobBuilder& python(const Who& who, std::string file, int line, std::string function);
  /// On a CPU and moving between the snapshots, at the lines given to stack().
  JobBuilder& computing(const Who& who);
  /// State letter of process and main thread: 'S', 'D', 'T', 'R', 'Z'.
  JobBuilder& state(const Who& who, char letter, std::string wchan = {});
  /// What the main thread sleeps on.
  JobBuilder& waits(const Who& who, model::WaitsOn target);
  JobBuilder& holds_gil(const Who& who, bool held = true);
  JobBuilder& environment(const Who& who, std::string name, std::string value);
  /// One more thread of a rank: tid_of(rank, 1), tid_of(rank, 2), …
  JobBuilder& thread(const Who& who, ThreadStory story);
  /// A process that is not a rank, such as a forked child.
  JobBuilder& process(ProcessStory story);
  /// A DataLoader worker of a rank: worker_pid(rank, 0), worker_pid(rank, 1), …
  JobBuilder& worker(const Who& who, std::string stack_text, char letter = 'S');

  /// No process and no evidence of its end.
  JobBuilder& absent(const Who& who);
  JobBuilder& killed(const Who& who, int signal);
  JobBuilder& exited(const Who& who, int status);
  /// There may be a process, but it could not be read.
  JobBuilder& unobserved(const Who& who, std::string why = "permission denied");

  JobBuilder& call(const Who& who, CallStory story);
  JobBuilder& all_reduce(const Who& who, std::int64_t sequence, std::int64_t count = 1024,
                         std::string site = {});
  JobBuilder& broadcast(const Who& who, std::int64_t sequence, model::Rank root = 0,
                        std::string site = {});
  JobBuilder& barrier(const Who& who, std::int64_t sequence, std::string site = {});
  JobBuilder& send(model::Rank from, model::Rank to, std::int64_t sequence, std::string site = {});
  JobBuilder& recv(model::Rank by, model::Rank from, std::int64_t sequence, std::string site = {});
  /// `operation` at every sequence number first..last.
  JobBuilder& history(const Who& who, std::int64_t first, std::int64_t last,
                      const std::string& operation = "all_reduce", const std::string& site = {});
  /// The history has every call since the start, as recorded by an agent.
  JobBuilder& complete_history();

  JobBuilder& fact(std::string kind, std::map<std::string, model::FactValue> fields,
                   std::optional<model::Rank> rank = {}, std::optional<pid_t> pid = {});
  /// A file's text from line 1; a newline right after R"( is not counted.
  JobBuilder& source(const std::string& file, std::string_view text, int first_line = 1);
  JobBuilder& log(std::optional<model::Rank> rank, std::string text);
  JobBuilder& command(std::vector<std::string> words);

  /// Overrides what follows from the statements: still unless a thread moved.
  JobBuilder& progress(model::Progress progress);
  JobBuilder& seconds_without_progress(double seconds);
  /// Only one snapshot; progress is unknown.
  JobBuilder& looked_once();
  /// The job has ended.
  JobBuilder& ended();

  [[nodiscard]] model::JobModel build() const;

  /// The first line of the given source that contains `part`; 0 if there is none.
  [[nodiscard]] int line_of(const std::string& file, std::string_view part) const;

 private:
  struct RankStory {
    std::optional<std::string> stack;
    std::optional<std::string> before;
    char state = 'S';
    std::string wchan;
    bool computing = false;
    std::optional<bool> gil;
    std::optional<model::WaitsOn> waits_on;
    std::map<std::string, std::string> environment;
    std::vector<ThreadStory> threads;
    bool present = true;
    std::optional<model::Exit> exit;
  };

  template <typename Change>
  JobBuilder& each(const Who& who, Change change);
  [[nodiscard]] std::vector<model::Frame> frames(std::string_view text) const;
  [[nodiscard]] model::Frame frame(std::string_view text) const;
  [[nodiscard]] model::Thread thread_of(const ThreadStory& story, pid_t tid, bool first) const;
  [[nodiscard]] model::Process rank_of(model::Rank rank, bool first) const;
  [[nodiscard]] model::Process other(const ProcessStory& story, pid_t free_pid, bool first) const;
  [[nodiscard]] model::Observation observation(double time, bool first) const;
  [[nodiscard]] std::vector<model::CollectiveCall> calls() const;
  [[nodiscard]] bool somebody_moved() const;

  int world_size_ = 0;
  std::string backend_ = "gloo";
  std::vector<RankStory> ranks_;
  std::vector<ProcessStory> others_;
  std::vector<std::pair<model::Rank, CallStory>> calls_;
  bool looked_once_ = false;
  std::optional<model::Progress> progress_;
  std::optional<double> seconds_;
  model::JobModel job_;  // given directly: groups, facts, sources, logs, coverage
};

JobBuilder job();

inline constexpr pid_t kLauncherPid = 900;
pid_t pid_of(model::Rank rank);
/// Index 0 is the main thread.
pid_t tid_of(model::Rank rank, int index);
pid_t worker_pid(model::Rank rank, int index);

}  // namespace ddpdoctor::tests
