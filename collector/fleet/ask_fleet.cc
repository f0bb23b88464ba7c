// SPDX-License-Identifier: Apache-2.0
#include "collector/fleet/ask_fleet.h"

#include <algorithm>
#include <chrono>

#include "collector/fleet/subjects.h"
#include "collector/nodes/conversation.h"
#include "collector/nodes/messages.h"

namespace ddpdoctor::fleet {
namespace {

using Clock = std::chrono::steady_clock;
using Talks = std::map<std::string, nodes::Conversation>;

constexpr std::chrono::milliseconds kAskTick{20};

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

void hear_lines(std::string_view data, nodes::Conversation& talk) {
  nodes::Lines lines;
  lines.feed(data, [&talk](std::string_view line) { talk.hear(line); });
}

/// The node has not answered at all: it is unreachable.
bool is_over_or_dumb(const nodes::Conversation& talk) {
  return talk.over() || talk.host().empty();
}

bool is_over_or_ready(const nodes::Conversation& talk) {
  return talk.over() || talk.ready();
}

/// Nodes with a longer delay get a shorter wait, so that all take their snapshot together.
void send_off(Talks& talks) {
  double farthest = 0;
  for (const auto& [node, talk] : talks) {
    farthest = talk.ready() ? std::max(farthest, talk.way()) : farthest;
  }
  for (auto& [node, talk] : talks) {
    if (talk.ready() && !talk.over()) {
      talk.go(farthest - talk.way());
    }
  }
}

Talks begin(transport::Transport& transport, const std::string& job, const std::string& session,
            const std::vector<std::string>& nodes) {
  Talks talks;
  for (const std::string& node : nodes) {
    const std::string to = subject(job, "to." + node);
    talks.try_emplace(node, node, session, [&transport, to, session](const std::string& text) {
      (void)transport.publish(to, session + " " + text, {});
    });
  }
  return talks;
}

}  // namespace

std::vector<nodes::Answer> ask_fleet(transport::Transport& transport, const std::string& job,
                                     const std::vector<std::string>& nodes,
                                     const AskFleetOptions& options, const Listener& others,
                                     const IsSilent& is_silent) {
  const std::string session = nodes::new_session();
  const std::string answers = subject(job, "answer." + session + ".");
  Talks talks = begin(transport, job, session, nodes);
  const auto began = Clock::now();
  (void)transport.publish(subject(job, "ask"), session, answers);
  bool sent_off = false;
  const auto all = [&](bool (*holds)(const nodes::Conversation&)) {
    return std::all_of(talks.begin(), talks.end(), [&](const auto& talk) {
      return holds(talk.second) || is_silent(talk.first);
    });
  };
  const auto is_over = [](const nodes::Conversation& talk) { return talk.over(); };
  while (!all(is_over) && seconds_since(began) < options.deadline) {
    if (const auto packet = transport.next(kAskTick)) {
      const bool answer = packet->subject.starts_with(answers);
      const auto talk = answer ? talks.find(packet->subject.substr(answers.size())) : talks.end();
      if (talk != talks.end()) {
        hear_lines(packet->data, talk->second);
      } else if (!answer) {
        others(*packet);
      }
    }
    if (seconds_since(began) > options.gather && all(is_over_or_dumb)) {
      break;
    }
    sent_off = sent_off || all(is_over_or_ready) || seconds_since(began) > options.gather;
    if (sent_off) {
      send_off(talks);
    }
  }
  std::vector<nodes::Answer> out;
  for (auto& [node, talk] : talks) {
    talk.give_up(seconds_since(began), {});
    out.push_back(talk.take());
    // Hints of these errors are about launchers and do not apply here.
    out.back().problem.hint.clear();
  }
  return out;
}

}  // namespace ddpdoctor::fleet
