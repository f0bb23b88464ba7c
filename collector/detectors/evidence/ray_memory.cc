// SPDX-License-Identifier: Apache-2.0
// Ray writes, since 2.1: "Memory on the node (IP: 10.0.0.7, ID: …) where the task (actor ID: …,
// name=Ref.__init__, pid=41782, memory used=31.27GB) was running was 486.71GB / 512.00GB
// (0.950605), which exceeds the memory usage threshold of 0.95. Ray killed this worker …"; the
// first versions without the brackets after "task", the newest without all between "ID" and "was".
#include "collector/detectors/evidence/ray_memory.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/log_lines.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kMostRayKills = 64;
constexpr std::size_t kMostUsers = 16;  // Ray lists ten
constexpr std::size_t kLongestWord = 100;
constexpr std::string_view kError = "ray.exceptions.OutOfMemoryError";

struct RayKill {
  std::string host;
  std::string name;  // empty: not told
  pid_t pid = 0;
  std::string used;  // "486.71GB"
  std::string total;
  std::map<std::string, std::pair<int, double>> users{};  // command → processes, gigabytes
};

std::string word_between(std::string_view text, std::string_view from, std::string_view ends) {
  const std::size_t at = text.find(from);
  std::string_view rest = at == text.npos ? std::string_view() : text.substr(at + from.size());
  return base::elide(base::printable(rest.substr(0, rest.find_first_of(ends))), kLongestWord);
}

std::optional<RayKill> ray_kill_in(std::string_view line) {
  const std::size_t at = line.find("Memory on the node (IP: ");
  const std::size_t was = at == line.npos ? at : line.find(" was ", at);
  if (was == line.npos) {
    return std::nullopt;
  }
  line = line.substr(at);
  const std::size_t running = line.find(" was running was ");
  std::string_view sizes =
      running == line.npos ? line.substr(was - at + 5) : line.substr(running + 17);
  const std::size_t slash = sizes.find(" / ");
  if (slash == sizes.npos || slash > kLongestWord) {
    return std::nullopt;
  }
  RayKill out{.host = word_between(line, "(IP: ", ",)"),
              .name = word_between(line, " name=", ",)"),
              .used = base::printable(sizes.substr(0, slash)),
              .total = word_between(sizes, " / ", " ,")};
  const std::string pid = word_between(line, " pid=", ",)");
  std::from_chars(pid.data(), pid.data() + pid.size(), out.pid);
  return out;
}

/// "40110\t42.18\tray::LLMRayActor" below "PID\tMEM(GB)\tCOMMAND".
bool read_user(std::string_view line, RayKill& kill) {
  std::vector<std::string_view> words;
  for (std::string_view rest = base::trim(line); words.size() < 2 && !rest.empty();) {
    const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
    words.push_back(rest.substr(0, end));
    rest = base::trim(rest.substr(end));
    line = rest;
  }
  double size = 0;
  pid_t pid = 0;
  if (words.size() < 2 || line.empty() ||
      std::from_chars(words[0].data(), words[0].data() + words[0].size(), pid).ec != std::errc() ||
      std::from_chars(words[1].data(), words[1].data() + words[1].size(), size).ec != std::errc()) {
    return false;
  }
  if (kill.users.size() < kMostUsers) {
    auto& [count, sum] = kill.users[base::elide(base::printable(line), kLongestWord)];
    ++count;
    sum += size;
  }
  return true;
}

std::vector<RayKill> ray_kills(const model::JobModel& job) {
  std::vector<RayKill> out;
  for (const model::Log& log : job.logs) {
    bool lists = false;  // below a table's heading
    for (const std::string_view raw : base::split(log.text, '\n')) {
      std::string_view line = model::read_log_line(raw.substr(0, 65'536)).text;
      if (line.starts_with('(') && line.find(" pid=") < line.find(") ")) {
        line = line.substr(line.find(") ") + 2);  // the label of an actor
      }
      lists = lists && !out.empty() && read_user(line, out.back());
      auto kill = out.size() < kMostRayKills ? ray_kill_in(line) : std::nullopt;
      const bool told =
          kill && std::any_of(out.begin(), out.end(), [&kill](const auto& other) {
            return kill->pid > 0 && other.pid == kill->pid && other.host == kill->host;
          });
      if (kill && !told) {
        out.push_back(std::move(*kill));
      }
      const std::string_view text = base::trim(line);
      lists = lists || (text.starts_with("PID") && text.ends_with("COMMAND") && !out.empty() &&
                        out.back().users.empty());
    }
  }
  return out;
}

/// "ray::LLMRayActor (8 processes, 334.6 GB), ray::Ref.__init__ (31.3 GB)": the biggest first.
std::string biggest_users(const RayKill& kill) {
  constexpr std::size_t kMostNamed = 3;
  std::vector<std::pair<std::string, std::pair<int, double>>> all(kill.users.begin(),
                                                                  kill.users.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second.second > b.second.second; });
  std::string out;
  for (std::size_t i = 0; i < std::min(all.size(), kMostNamed); ++i) {
    const auto& [count, sum] = all[i].second;
    out += fmt::format("{}{} ({}{:.1f} GB)", i == 0 ? "" : ", ", all[i].first,
                       count > 1 ? fmt::format("{} processes, ", count) : "", sum);
  }
  return out;
}

std::string who_was_killed(const RayKill& kill) {
  return kill.pid > 0 ? fmt::format("{} (pid {} on {})", kill.name, kill.pid, kill.host)
                      : fmt::format("a worker on {}", kill.host);
}

/// What Ray raises where a task or an actor was awaited whose process has ended.
bool says_worker_ended(std::string_view exception) {
  return exception.find("RayActorError") != exception.npos ||
         exception.find("ActorDiedError") != exception.npos ||
         exception.find("WorkerCrashedError") != exception.npos;
}

}  // namespace

std::optional<Finding> killed_by_ray(const graph::Examination& examination) {
  const std::vector<RayKill> kills = ray_kills(examination.job);
  if (kills.empty() || outlived(examination, std::nullopt)) {
    return std::nullopt;
  }
  const RayKill& first = kills.front();
  Finding finding;
  finding.kind = "dead-rank";
  finding.confidence = Confidence::kPossible;
  for (const Traceback& one : tracebacks(examination.job)) {
    if (one.exception.find(kError) != std::string::npos || says_worker_ended(one.exception)) {
      finding.confidence = Confidence::kLikely;
      if (one.place.known() && finding.locations.empty()) {
        finding.locations.push_back(location(one.place, {}, "its result was awaited here"));
      }
    }
  }
  finding.summary = fmt::format(
      "Ray killed {} because memory ran out: the node used {} of {}",
      kills.size() == 1 ? who_was_killed(first)
                        : fmt::format("{} workers, {} first,", kills.size(), who_was_killed(first)),
      first.used, first.total);
  for (const RayKill& kill : kills) {
    if (finding.evidence.size() >= 8) {
      break;
    }
    finding.evidence.push_back({.rank = {},
                                .text = fmt::format("log: Ray killed {}: the node used {} of {}",
                                                    who_was_killed(kill), kill.used, kill.total)});
    if (const std::string users = biggest_users(kill); !users.empty()) {
      finding.evidence.push_back(
          {.rank = {}, .text = fmt::format("log: biggest processes of that node: {}", users)});
    }
  }
  if (first.pid > 0) {
    finding.details["pid"] = static_cast<std::int64_t>(first.pid);
  }
  finding.details["host"] = first.host;
  finding.fix = fmt::format(
      "Lower the memory of the biggest processes on {}: fewer workers, smaller batches, nothing "
      "offloaded to the host. Or give that node more.",
      first.host);
  return finding;
}

}  // namespace ddpdoctor::detectors
