// SPDX-License-Identifier: Apache-2.0
#include "collector/nodes/conversation.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace ddpdoctor::nodes {
namespace {

constexpr int kPings = 4;  // the shortest one counts
constexpr std::size_t kLongestName = 255;
constexpr std::size_t kLongestText = 2000;

std::optional<double> seconds(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string argument(const Message& message, std::size_t index, std::size_t longest) {
  return index < message.arguments.size()
             ? base::elide(base::printable(message.arguments[index]), longest)
             : std::string();
}

base::Error damaged() {
  return {.what = "its answer was damaged on the way",
          .hint = "does the launcher pass standard output through as it is?"};
}

}  // namespace

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void Conversation::hear(std::string_view line) {
  const double now = now_seconds();
  const auto message = read_message(line, session_);
  if (!message || over_) {
    return;
  }
  if (message->word == "hello") {
    hear_hello(*message);
  } else if (message->word == "pong") {
    hear_pong(*message, now);
  } else if (message->word == "began") {
    const auto theirs = seconds(argument(*message, 0, kLongestName));
    answer_.looked = theirs && answer_.clock ? *theirs - answer_.clock->ahead : now;
  } else if (message->word == "data") {
    hear_data(*message);
  } else if (message->word == "end") {
    finish(*message);
  } else if (message->word == "problem") {
    answer_.problem = {.what = argument(*message, 0, kLongestText),
                       .hint = argument(*message, 1, kLongestText)};
    over_ = true;
  }
}

void Conversation::hear_hello(const Message& message) {
  if (pings_ > 0) {
    return;  // received twice
  }
  answer_.host = argument(message, 1, kLongestName);
  answer_.job = argument(message, 2, kLongestText);
  ping();
}

void Conversation::ping() {
  ++pings_;
  asked_at_ = now_seconds();
  send_(fmt::format("ping {}\n", pings_));
}

void Conversation::hear_pong(const Message& message, double now) {
  const auto theirs = seconds(argument(message, 1, kLongestName));
  if (!theirs || argument(message, 0, kLongestName) != std::to_string(pings_)) {
    return;
  }
  const double way = std::max((now - asked_at_) / 2, 0.0);
  if (!answer_.clock || way < answer_.clock->error) {
    answer_.clock = Clock{.ahead = *theirs - (asked_at_ + now) / 2, .error = way};
  }
  if (pings_ < kPings) {
    ping();
  } else {
    ready_ = true;
  }
}

void Conversation::go(double delay) {
  if (!gone_) {
    gone_ = true;
    send_(fmt::format("go {:.6f}\n", delay));
  }
}

/// Parts are numbered: one may arrive twice, or out of order.
void Conversation::hear_data(const Message& message) {
  if (message.arguments.empty() || held_ + message.arguments.front().size() > kLargestAnswer) {
    return;
  }
  const std::string number = argument(message, 1, kLongestName);
  std::size_t index = data_.size();
  std::from_chars(number.data(), number.data() + number.size(), index);
  if (data_.emplace(index, message.arguments.front()).second) {
    held_ += message.arguments.front().size();
  }
  if (end_) {
    finish(Message(*end_));
  }
}

/// The end may arrive before the last part; that part then completes the data.
void Conversation::finish(const Message& message) {
  end_ = message;
  const std::string wanted = argument(message, 1, kLongestName);
  if (!wanted.empty() && wanted != std::to_string(data_.size())) {
    return;  // a part is still in transit
  }
  std::string whole;
  whole.reserve(held_);
  for (auto& [index, part] : data_) {
    whole += part;
  }
  auto bytes = decoded(whole);
  if (bytes && std::to_string(bytes->size()) == argument(message, 0, kLongestName)) {
    answer_.capture = std::move(*bytes);
  } else {
    answer_.problem = damaged();
  }
  data_.clear();
  over_ = true;
}

void Conversation::fail(base::Error problem) {
  answer_.problem = end_ ? damaged() : std::move(problem);
  over_ = true;
}

void Conversation::give_up(double seconds, std::string_view last_said) {
  if (over_) {
    return;
  }
  over_ = true;
  if (end_) {
    answer_.problem = damaged();
    return;
  }
  answer_.problem.what =
      answer_.host.empty()
          ? fmt::format("no answer within {}{}", base::duration(seconds),
                        last_said.empty() ? "" : fmt::format("; the last it said: {}", last_said))
          : fmt::format("it found the job and did not finish within {}", base::duration(seconds));
  answer_.problem.hint = "--deadline S waits longer";
}

}  // namespace ddpdoctor::nodes
