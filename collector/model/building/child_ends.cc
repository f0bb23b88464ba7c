// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/child_ends.h"

#include <algorithm>
#include <csignal>
#include <set>
#include <string>

#include <sys/wait.h>

namespace ddpdoctor::model {
namespace {

using sources::RecordedEvent;
using sources::RecordedState;
using sources::Recording;

/// MPICH's launcher, which ends its ranks for one reason only: the job is over. Under load it
/// learns of a death by a closed socket, ends all ranks and reaps them in pid order.
bool only_cleans_up(const Recording& recording) {
  return recording.command.find("hydra_pmi_proxy") != std::string::npos;
}

bool is_end(const RecordedEvent& event) {
  return event.kind == "child-exit" && event.count > 0;
}

std::optional<int> signal_of(const RecordedEvent& end) {
  const auto status = static_cast<int>(end.peer);
  return WIFSIGNALED(status) ? std::optional(WTERMSIG(status)) : std::nullopt;
}

/// The signal was sent to a child that was already exiting.
bool came_late(const RecordedEvent& event) {
  return event.kind == "signal-sent" && event.state == RecordedState::kCompleted;
}

bool was_sent(const RecordedEvent& event) {
  return event.kind == "signal-sent" && event.state != RecordedState::kCompleted;
}

/// The first signal with this number that was sent to the child.
const RecordedEvent* sent(const Recording& parent, std::int64_t child, int number) {
  const auto found =
      std::find_if(parent.events.begin(), parent.events.end(), [&](const auto& event) {
        return event.kind == "signal-sent" && event.count == child && event.peer == number;
      });
  return found == parent.events.end() ? nullptr : &*found;
}

/// A rank failed by itself before this signal was sent. A shell that kills one rank of a healthy
/// job is the cause itself and not a launcher that cleans up.
bool a_rank_fell_before(const Recording& parent, const RecordedEvent& signal,
                        const std::set<std::int64_t>& ranks) {
  return std::any_of(parent.events.begin(), parent.events.end(), [&](const RecordedEvent& event) {
    if (!ranks.contains(event.count) || event.count == signal.count) {
      return false;
    }
    if (came_late(event)) {
      return true;
    }
    if (!is_end(event) || event.peer == 0 || event.time > signal.time) {
      return false;
    }
    const std::optional<int> number = signal_of(event);
    const RecordedEvent* asked = number ? sent(parent, event.count, *number) : nullptr;
    return asked == nullptr || came_late(*asked);
  });
}

Fact fact_of(const Recording& parent, std::int64_t child, std::int64_t number) {
  return {.rank = std::nullopt,
          .pid = static_cast<pid_t>(child),
          .kind = "cleaned-up",
          .fields = {{"launcher_pid", std::int64_t{parent.pid}}, {"signal", number}}};
}

/// If the signals of the parent are unknown, it is also unknown which of the children with equal
/// exits was the first.
void add_alike(const Recording& parent, std::vector<Fact>& facts) {
  const auto alike = [](const RecordedEvent& event) {
    return is_end(event) && signal_of(event) == SIGKILL;
  };
  if (std::count_if(parent.events.begin(), parent.events.end(), alike) < 2) {
    return;
  }
  for (const RecordedEvent& event : parent.events) {
    if (alike(event)) {
      facts.push_back(fact_of(parent, event.count, SIGKILL));
    }
  }
}

}  // namespace

std::map<pid_t, Exit> child_ends(const std::vector<Recording>& recordings) {
  std::map<pid_t, Exit> ends;
  for (const Recording& recording : recordings) {
    for (const RecordedEvent& event : recording.events) {
      if (!is_end(event)) {
        continue;
      }
      Exit& end = ends[static_cast<pid_t>(event.count)];
      const auto status = static_cast<int>(event.peer);
      if (const auto number = signal_of(event)) {
        end.signal = number;
      } else if (WIFEXITED(status)) {
        end.status = WEXITSTATUS(status);
      }
    }
  }
  return ends;
}

std::vector<Fact> cleaned_up(const std::vector<Recording>& recordings) {
  std::set<std::int64_t> ranks;
  for (const Recording& recording : recordings) {
    if (recording.rank) {
      ranks.insert(recording.pid);
    }
  }
  std::vector<Fact> facts;
  for (const Recording& parent : recordings) {
    const bool told =
        std::any_of(parent.events.begin(), parent.events.end(),
                    [](const RecordedEvent& event) { return event.kind == "signal-sent"; });
    if (only_cleans_up(parent) && !told) {
      add_alike(parent, facts);
    }
    for (const RecordedEvent& event : parent.events) {
      const bool first =
          was_sent(event) && sent(parent, event.count, static_cast<int>(event.peer)) == &event;
      if (first && (only_cleans_up(parent) || a_rank_fell_before(parent, event, ranks))) {
        facts.push_back(fact_of(parent, event.count, event.peer));
      }
    }
  }
  return facts;
}

}  // namespace ddpdoctor::model
