// SPDX-License-Identifier: Apache-2.0
// The statements of JobBuilder: each only stores its arguments.
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::tests {

using model::Rank;

template <typename Change>
JobBuilder& JobBuilder::each(const Who& who, Change change) {
  for (const Rank rank : who.among(world_size_)) {
    if (rank >= 0 && rank < world_size_) {
      change(ranks_[static_cast<std::size_t>(rank)]);
    }
  }
  return *this;
}

JobBuilder& JobBuilder::ranks(int world_size) {
  world_size_ = world_size;
  ranks_.resize(static_cast<std::size_t>(world_size));
  return group("0", Who(kAll).among(world_size).values(), "default_pg");
}

JobBuilder& JobBuilder::backend(std::string name) {
  backend_ = std::move(name);
  return *this;
}

JobBuilder& JobBuilder::group(std::string id, std::vector<Rank> members, std::string name) {
  job_.groups.push_back(
      {.id = std::move(id), .name = std::move(name), .backend = {}, .ranks = std::move(members)});
  return *this;
}

JobBuilder& JobBuilder::stack(const Who& who, std::string text) {
  return each(who, [&](RankStory& story) { story.stack = text; });
}

JobBuilder& JobBuilder::stack_before(const Who& who, std::string text) {
  return each(who, [&](RankStory& story) { story.before = text; });
}

JobBuilder& JobBuilder::python(const Who& who, std::string file, int line, std::string function) {
  return stack(who,
               "py:" + std::move(function) + "@" + std::move(file) + ":" + std::to_string(line));
}

JobBuilder& JobBuilder::computing(const Who& who) {
  return each(who, [](RankStory& story) { story.computing = true; });
}

JobBuilder& JobBuilder::state(const Who& who, char letter, std::string wchan) {
  return each(who, [&](RankStory& story) {
    story.state = letter;
    story.wchan = wchan;
  });
}

JobBuilder& JobBuilder::waits(const Who& who, model::WaitsOn target) {
  return each(who, [&](RankStory& story) { story.waits_on = target; });
}

JobBuilder& JobBuilder::holds_gil(const Who& who, bool held) {
  return each(who, [&](RankStory& story) { story.gil = held; });
}

JobBuilder& JobBuilder::environment(const Who& who, std::string name, std::string value) {
  return each(who, [&](RankStory& story) { story.environment[name] = value; });
}

JobBuilder& JobBuilder::thread(const Who& who, ThreadStory story) {
  return each(who, [&](RankStory& rank) { rank.threads.push_back(story); });
}

JobBuilder& JobBuilder::process(ProcessStory story) {
  others_.push_back(std::move(story));
  return *this;
}

JobBuilder& JobBuilder::worker(const Who& who, std::string stack_text, char letter) {
  for (const Rank rank : who.among(world_size_)) {
    const auto earlier = std::count_if(others_.begin(), others_.end(), [rank](const auto& o) {
      return o.role == model::Role::kDataLoaderWorker && o.rank == rank;
    });
    process({.role = model::Role::kDataLoaderWorker,
             .rank = rank,
             .pid = worker_pid(rank, static_cast<int>(earlier)),
             .state = letter,
             .threads = {{.stack = stack_text, .name = "pt_data_worker", .state = letter}}});
  }
  return *this;
}

JobBuilder& JobBuilder::absent(const Who& who) {
  return each(who, [](RankStory& story) { story.present = false; });
}

JobBuilder& JobBuilder::killed(const Who& who, int signal) {
  return each(who, [signal](RankStory& story) {
    story.exit = model::Exit{.status = {}, .signal = signal};
  });
}

JobBuilder& JobBuilder::exited(const Who& who, int status) {
  return each(who, [status](RankStory& story) {
    story.exit = model::Exit{.status = status, .signal = {}};
  });
}

JobBuilder& JobBuilder::unobserved(const Who& who, std::string why) {
  for (const Rank rank : who.among(world_size_)) {
    job_.coverage.unobserved_ranks.insert(rank);
    job_.coverage.unobserved.push_back("rank " + std::to_string(rank) + ": " + why);
  }
  return absent(who);
}

JobBuilder& JobBuilder::call(const Who& who, CallStory story) {
  for (const Rank rank : who.among(world_size_)) {
    calls_.emplace_back(rank, story);
  }
  return *this;
}

JobBuilder& JobBuilder::all_reduce(const Who& who, std::int64_t sequence, std::int64_t count,
                                   std::string site) {
  return call(who, {.operation = "all_reduce",
                    .sequence = sequence,
                    .site = std::move(site),
                    .count = count,
                    .shape = std::vector<std::int64_t>{count},
                    .dtype = "float32"});
}

JobBuilder& JobBuilder::broadcast(const Who& who, std::int64_t sequence, Rank root,
                                  std::string site) {
  return call(
      who, {.operation = "broadcast", .sequence = sequence, .site = std::move(site), .root = root});
}

JobBuilder& JobBuilder::barrier(const Who& who, std::int64_t sequence, std::string site) {
  return call(who, {.operation = "barrier", .sequence = sequence, .site = std::move(site)});
}

JobBuilder& JobBuilder::send(Rank from, Rank to, std::int64_t sequence, std::string site) {
  return call(from,
              {.operation = "send", .sequence = sequence, .site = std::move(site), .peer = to});
}

JobBuilder& JobBuilder::recv(Rank by, Rank from, std::int64_t sequence, std::string site) {
  return call(by,
              {.operation = "recv", .sequence = sequence, .site = std::move(site), .peer = from});
}

JobBuilder& JobBuilder::history(const Who& who, std::int64_t first, std::int64_t last,
                                const std::string& operation, const std::string& site) {
  for (std::int64_t sequence = first; sequence <= last; ++sequence) {
    call(who, {.operation = operation, .sequence = sequence, .site = site});
  }
  return *this;
}

JobBuilder& JobBuilder::complete_history() {
  job_.history_complete = true;
  return *this;
}

JobBuilder& JobBuilder::fact(std::string kind, std::map<std::string, model::FactValue> fields,
                             std::optional<Rank> rank, std::optional<pid_t> pid) {
  job_.facts.push_back(
      {.rank = rank, .pid = pid, .kind = std::move(kind), .fields = std::move(fields)});
  return *this;
}

JobBuilder& JobBuilder::source(const std::string& file, std::string_view text, int first_line) {
  if (text.starts_with('\n')) {
    text.remove_prefix(1);
  }
  int number = first_line;
  for (const std::string_view line : base::split(text, '\n')) {
    job_.sources[file][number++] = std::string(line);
  }
  return *this;
}

JobBuilder& JobBuilder::log(std::optional<Rank> rank, std::string text) {
  job_.logs.push_back({.rank = rank, .text = std::move(text)});
  return *this;
}

JobBuilder& JobBuilder::command(std::vector<std::string> words) {
  job_.command = std::move(words);
  return *this;
}

JobBuilder& JobBuilder::progress(model::Progress progress) {
  progress_ = progress;
  return *this;
}

JobBuilder& JobBuilder::seconds_without_progress(double seconds) {
  seconds_ = seconds;
  return *this;
}

JobBuilder& JobBuilder::looked_once() {
  looked_once_ = true;
  return *this;
}

JobBuilder& JobBuilder::ended() {
  job_.ended = true;
  return *this;
}

}  // namespace ddpdoctor::tests
