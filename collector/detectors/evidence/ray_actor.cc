// SPDX-License-Identifier: Apache-2.0
// ActorDiedError lists one field a line ("\tpid: 44012", "\tip: 10.1.1.5"); the raylet writes
// "Worker IP address: 10.1.1.5 … Worker PID: 44012" in its line.
#include "collector/detectors/evidence/ray_actor.h"

#include <charconv>
#include <string_view>

#include "base/text.h"
#include "collector/detectors/evidence/traceback_lines.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kMostFields = 12;  // lines below the message
constexpr std::size_t kLongestField = 64;

pid_t pid_at(std::string_view text) {
  pid_t pid = 0;
  std::from_chars(text.data(), text.data() + text.size(), pid);
  return pid;
}

std::string word_behind(std::string_view line, std::string_view name) {
  const std::size_t at = line.find(name);
  const std::string_view rest =
      at == line.npos ? std::string_view() : line.substr(at + name.size());
  return base::elide(base::printable(rest.substr(0, rest.find_first_of(" ,\t"))), kLongestField);
}

void read_field(std::string_view line, Remote& actor) {
  line = base::trim(line);
  if (line.starts_with("pid: ")) {
    actor.pid = pid_at(line.substr(5));
  } else if (line.starts_with("ip: ")) {
    actor.host = word_behind(line, "ip: ");
  } else if (line.starts_with("name: ") ||
             (line.starts_with("class_name: ") && actor.name.empty())) {
    actor.name = word_behind(line, "name: ");
  }
}

}  // namespace

std::optional<Remote> lost_actor(const model::JobModel& job) {
  for (const model::Log& log : job.logs) {
    const auto lines = base::split(log.text, '\n');
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::string_view line = lines[i];
      Remote actor;
      if (line.find("A worker died or was killed while executing a task") != line.npos) {
        actor.pid = pid_at(word_behind(line, "Worker PID: "));
        actor.host = word_behind(line, "Worker IP address: ");
      } else if (line.find("The actor died unexpectedly") != line.npos ||
                 line.find("ActorDiedError") != line.npos) {
        for (std::size_t k = i + 1; k < lines.size() && k <= i + kMostFields; ++k) {
          read_field(model::read_log_line(lines[k].substr(0, 4096)).text, actor);
        }
      }
      if (actor.pid > 0) {
        return actor;
      }
    }
  }
  return std::nullopt;
}

std::optional<model::Rank> rank_of_actor(const model::JobModel& job, const Remote& actor) {
  constexpr std::string_view kRank = "[rank=";
  const std::string label = "pid=" + std::to_string(actor.pid);
  for (const model::Log& log : job.logs) {
    for (const std::string_view line : base::split(log.text, '\n')) {
      const std::size_t at = line.find(kRank);
      const std::size_t writer = line.substr(0, at).find(label);
      const bool own = at != line.npos && writer != line.npos &&
                       line.find_first_not_of("0123456789", writer + 4) == writer + label.size() &&
                       (actor.host.empty() || line.find("ip=") == line.npos ||
                        line.find("ip=" + actor.host) != line.npos);
      if (const auto rank = own ? leading_number(line.substr(at + kRank.size())) : std::nullopt) {
        return *rank;
      }
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors
