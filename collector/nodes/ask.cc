// SPDX-License-Identifier: Apache-2.0
#include "collector/nodes/ask.h"

#include <algorithm>
#include <array>
#include <memory>
#include <poll.h>
#include <random>
#include <utility>

#include <sys/resource.h>

#include "collector/nodes/one_node.h"

namespace ddpdoctor::nodes {
namespace {

using Nodes = std::vector<std::unique_ptr<OneNode>>;

constexpr int kTick = 20;          // milliseconds between two checks of the clock
constexpr double kFarewell = 0.3;  // seconds for a launcher to exit by itself
constexpr rlim_t kDescriptorsEach = 8;

/// Three pipes for each node; the soft limit of most shells is 1,024.
void allow_descriptors(std::size_t nodes) {
  struct rlimit limit{};
  const rlim_t wanted = kDescriptorsEach * nodes + 64;
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted) {
    limit.rlim_cur = std::min(wanted, limit.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

/// Reads what has arrived from any node; waits one tick at most.
void listen(const Nodes& nodes) {
  std::vector<pollfd> polled;
  for (const auto& node : nodes) {
    polled.push_back({.fd = node->output(), .events = POLLIN, .revents = 0});
    polled.push_back({.fd = node->errors(), .events = POLLIN, .revents = 0});
  }
  ::poll(polled.data(), polled.size(), kTick);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (polled[2 * i].revents != 0) {
      nodes[i]->read_output();
    }
    if (polled[2 * i + 1].revents != 0 && nodes[i]->errors() >= 0) {
      nodes[i]->read_errors();
    }
    nodes[i]->notice_end();
  }
}

bool all_over(const Nodes& nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [](const auto& node) { return node->over(); });
}

bool all_ready(const Nodes& nodes) {
  return std::all_of(nodes.begin(), nodes.end(),
                     [](const auto& node) { return node->over() || node->ready(); });
}

/// Nodes with a longer delay get a shorter wait, so that all take their snapshot together.
void send_off(const Nodes& nodes) {
  double farthest = 0;
  for (const auto& node : nodes) {
    farthest = node->ready() ? std::max(farthest, node->way()) : farthest;
  }
  for (const auto& node : nodes) {
    if (node->ready() && !node->over()) {
      node->go(farthest - node->way());
    }
  }
}

void end_all(const Nodes& nodes) {
  const double until = now_seconds() + kFarewell;
  for (const auto& node : nodes) {
    node->kill();
  }
  while (now_seconds() < until &&
         std::any_of(nodes.begin(), nodes.end(), [](const auto& node) { return node->lives(); })) {
    ::poll(nullptr, 0, kTick / 4);
  }
}

}  // namespace

std::vector<Answer> ask(const std::vector<NodeCommand>& commands, const AskOptions& options) {
  allow_descriptors(commands.size());
  const double began = now_seconds();
  Nodes nodes;
  nodes.reserve(commands.size());
  for (const NodeCommand& command : commands) {
    nodes.push_back(std::make_unique<OneNode>(command, options.session));
  }
  bool sent_off = false;
  while (!all_over(nodes) && now_seconds() - began < options.deadline) {
    listen(nodes);
    sent_off = sent_off || all_ready(nodes) || now_seconds() - began > options.gather;
    if (sent_off) {
      send_off(nodes);
    }
  }
  std::vector<Answer> answers;
  for (const auto& node : nodes) {
    node->give_up(options.deadline);
    answers.push_back(node->take());
  }
  end_all(nodes);
  return answers;
}

std::string new_session() {
  constexpr std::string_view kLetters = "abcdefghijklmnop";
  std::random_device random;
  std::string out;
  for (int i = 0; i < 16; ++i) {
    out += kLetters[random() % kLetters.size()];
  }
  return out;
}

}  // namespace ddpdoctor::nodes
