// SPDX-License-Identifier: Apache-2.0
#include "tests/support/job_builder.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/support/told_jobs.h"

namespace ddpdoctor::tests {

using model::Rank;

namespace {

constexpr double kFirstLook = 1'700'000'000;  // seconds since the epoch
constexpr double kInterval = 5;
constexpr pid_t kFirstOtherPid = 700;

std::pair<std::string_view, std::string_view> cut(std::string_view text, std::size_t at) {
  return at == std::string_view::npos ? std::pair(text, std::string_view())
                                      : std::pair(text.substr(0, at), text.substr(at + 1));
}

/// "group=0; src=1"
std::vector<std::pair<std::string, std::string>> locals_of(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string_view part : base::split(text, ';')) {
    const auto [name, value] = cut(part, part.find('='));
    out.emplace_back(base::trim(name), base::trim(value));
  }
  return out;
}

std::vector<std::string_view> between_bars(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t bar = text.find(" | ");
    out.push_back(base::trim(text.substr(0, bar)));
    text = bar == std::string_view::npos ? std::string_view() : text.substr(bar + 3);
  }
  return out;
}

}  // namespace

pid_t pid_of(Rank rank) {
  return 1000 + 100 * rank;
}

pid_t tid_of(Rank rank, int index) {
  return pid_of(rank) + index;
}

pid_t worker_pid(Rank rank, int index) {
  return pid_of(rank) + 50 + index;
}

JobBuilder job() {
  return {};
}

model::RankSet Who::among(int world_size) const {
  if (!all_) {
    return ranks_;
  }
  model::RankSet all;
  for (Rank rank = 0; rank < world_size; ++rank) {
    all.insert(rank);
  }
  return all;
}

int JobBuilder::line_of(const std::string& file, std::string_view part) const {
  const auto lines = job_.sources.find(file);
  if (lines != job_.sources.end()) {
    for (const auto& [number, text] : lines->second) {
      if (text.find(part) != std::string::npos) {
        return number;
      }
    }
  }
  return 0;
}

/// FUNCTION{locals}@FILE:LINE without the "py:" in front.
model::Frame JobBuilder::frame(std::string_view text) const {
  model::Frame out;
  out.language = model::Language::kPython;
  const std::size_t brace = text.find('{');
  std::size_t at = text.find('@');
  if (brace < at) {
    const std::size_t end = text.find('}', brace);
    out.locals = locals_of(text.substr(brace + 1, end - brace - 1));
    at = text.find('@', end);
  }
  out.function = text.substr(0, std::min(brace, at));
  const std::string_view place = cut(text, at).second;
  if (const std::size_t tilde = place.find('~'); tilde != std::string_view::npos) {
    out.file = place.substr(0, tilde);
    out.line = line_of(out.file, place.substr(tilde + 1));
    EXPECT_GT(out.line, 0) << "no told source line for: " << text;
    return out;
  }
  const auto [file, number] = cut(place, place.rfind(':'));
  out.file = file;
  std::from_chars(number.data(), number.data() + number.size(), out.line);
  return out;
}

std::vector<model::Frame> JobBuilder::frames(std::string_view text) const {
  std::vector<model::Frame> out;
  for (const std::string_view part : between_bars(text)) {
    if (part.starts_with("native:")) {
      const auto [function, module] = cut(part.substr(7), part.substr(7).find('@'));
      model::Frame native;
      native.function = function;
      native.module = module;
      out.push_back(std::move(native));
    } else {
      EXPECT_TRUE(part.starts_with("py:")) << "neither py: nor native: " << part;
      out.push_back(frame(part.substr(std::min<std::size_t>(3, part.size()))));
    }
  }
  return out;
}

model::Thread JobBuilder::thread_of(const ThreadStory& story, pid_t tid, bool first) const {
  model::Thread out;
  out.tid = story.tid != 0 ? story.tid : tid;
  out.name = story.name;
  out.state = story.state;
  out.wchan = story.wchan;
  out.gil = story.gil;
  out.waits_on = story.waits_on;
  out.frames = frames(story.stack);
  out.run_count = first || !story.moved ? 10 : 20;
  out.capture = "no stop";
  return out;
}

model::Process JobBuilder::rank_of(Rank rank, bool first) const {
  const RankStory& story = ranks_[static_cast<std::size_t>(rank)];
  model::Process out;
  out.host = "node0";
  out.pid = pid_of(rank);
  out.ppid = kLauncherPid;
  out.rank = rank;
  out.role = model::Role::kRank;
  out.command = job_.command;
  out.exe = "/usr/bin/python3.11";
  out.start_time = kFirstLook - 300;
  out.state = story.computing ? 'R' : story.state;
  out.wchan = story.wchan;
  out.environment = story.environment;
  out.environment.emplace("RANK", std::to_string(rank));
  out.environment.emplace("WORLD_SIZE", std::to_string(world_size_));
  out.python_version = "3.11";
  out.exit = story.exit;
  if (story.exit) {
    out.state = 'Z';
    return out;
  }
  const bool elsewhere = story.before.has_value();
  const ThreadStory main = {.stack = first && elsewhere ? *story.before : story.stack.value_or(""),
                            .state = out.state,
                            .wchan = story.wchan,
                            .gil = story.gil,
                            .waits_on = story.waits_on,
                            .moved = elsewhere || story.computing};
  out.threads.push_back(thread_of(main, out.pid, first));
  for (std::size_t i = 0; i < story.threads.size(); ++i) {
    out.threads.push_back(
        thread_of(story.threads[i], tid_of(rank, static_cast<int>(i) + 1), first));
  }
  return out;
}

model::Process JobBuilder::other(const ProcessStory& story, pid_t free_pid, bool first) const {
  model::Process out;
  out.host = "node0";
  out.pid = story.pid != 0 ? story.pid : free_pid;
  out.ppid = story.ppid;
  if (out.ppid == 0) {
    out.ppid = story.rank ? pid_of(*story.rank) : kLauncherPid;
  }
  out.rank = story.rank;
  out.role = story.role;
  out.command = story.command;
  out.state = story.exit ? 'Z' : story.state;
  out.wchan = story.wchan;
  out.exit = story.exit;
  for (std::size_t i = 0; i < story.threads.size(); ++i) {
    out.threads.push_back(
        thread_of(story.threads[i], static_cast<pid_t>(out.pid + static_cast<pid_t>(i)), first));
  }
  return out;
}

model::Observation JobBuilder::observation(double time, bool first) const {
  model::Observation out;
  out.time = time;
  model::Process launcher;
  launcher.host = "node0";
  launcher.pid = kLauncherPid;
  launcher.ppid = 1;
  launcher.role = model::Role::kLauncher;
  launcher.state = 'S';
  launcher.threads.push_back(thread_of({.stack = ""}, kLauncherPid, first));
  out.processes.push_back(std::move(launcher));
  for (Rank rank = 0; rank < world_size_; ++rank) {
    if (ranks_[static_cast<std::size_t>(rank)].present) {
      out.processes.push_back(rank_of(rank, first));
    }
  }
  pid_t free_pid = kFirstOtherPid;
  for (const ProcessStory& story : others_) {
    out.processes.push_back(other(story, free_pid++, first));
  }
  return out;
}

std::vector<model::CollectiveCall> JobBuilder::calls() const {
  std::set<std::tuple<std::string, std::int64_t, Rank>> made;
  for (const auto& [rank, story] : calls_) {
    made.emplace(story.group, story.sequence, rank);
  }
  std::vector<model::CollectiveCall> out;
  for (const auto& [rank, story] : calls_) {
    std::vector<Rank> members;
    const bool point_to_point = story.peer.has_value();
    if (point_to_point) {
      members = {*story.peer};
    } else {
      for (const model::ProcessGroup& g : job_.groups) {
        members = g.id == story.group ? g.ranks : members;
      }
    }
    const bool all = std::all_of(members.begin(), members.end(), [&story, &made](Rank member) {
      return made.contains({story.group, story.sequence, member});
    });
    model::CollectiveCall call{
        .rank = rank,
        .group = story.group,
        .sequence = story.sequence,
        .point_to_point = point_to_point,
        .operation = story.operation,
        .count = story.count,
        .shape = story.shape,
        .dtype = story.dtype,
        .reduce_op = story.reduce_op,
        .root = story.root,
        .peer = story.peer,
        .splits = story.splits,
        .output_splits = {},
        .state = all ? model::CallState::kCompleted : model::CallState::kStarted,
        .time = story.time,
        .end_time = {},
        .call_site = {},
        .callers = {}};
    call.state = story.state.value_or(call.state);
    for (const std::string_view part : between_bars(story.site)) {
      const model::Frame site = frame(part.starts_with("py:") ? part.substr(3) : part);
      call.callers.push_back({.file = site.file, .line = site.line, .function = site.function});
    }
    if (!call.callers.empty()) {
      call.call_site = call.callers.front();
    }
    out.push_back(std::move(call));
  }
  return out;
}

bool JobBuilder::somebody_moved() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const RankStory& story) {
    return story.before.has_value() || story.computing;
  });
}

model::JobModel JobBuilder::build() const {
  model::JobModel out = job_;
  if (world_size_ > 0) {
    out.world_size = world_size_;
  }
  for (model::ProcessGroup& g : out.groups) {
    g.backend = backend_;
  }
  out.hosts = {"node0"};
  out.launcher_pid = kLauncherPid;
  out.collectives = calls();
  out.observations.push_back(observation(kFirstLook, !looked_once_));
  if (!looked_once_) {
    out.observations.push_back(observation(kFirstLook + kInterval, false));
    out.progress = somebody_moved() ? model::Progress::kMoving : model::Progress::kStill;
    if (out.progress == model::Progress::kStill) {
      out.seconds_without_progress = kInterval;
    }
  }
  out.progress = progress_.value_or(out.progress);
  if (seconds_) {
    out.seconds_without_progress = seconds_;
  }
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  if (test != nullptr) {
    told_jobs().push_back(
        {.test = std::string(test->test_suite_name()) + "." + test->name(), .job = out});
  }
  return out;
}

std::vector<ToldJob>& told_jobs() {
  static std::vector<ToldJob> told;
  return told;
}

}  // namespace ddpdoctor::tests
