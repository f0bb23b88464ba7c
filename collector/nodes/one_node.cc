// SPDX-License-Identifier: Apache-2.0
#include "collector/nodes/one_node.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace ddpdoctor::nodes {
namespace {

constexpr int kPings = 4;  // the shortest of them counts
constexpr std::size_t kMostErrors = 16384;
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

/// What can be read now; false when the stream has ended.
template <typename Use>
bool drain(int fd, Use use) {
  std::array<char, 65536> buffer{};
  while (true) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got > 0) {
      use(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      return false;
    } else if (errno == EAGAIN) {
      return true;
    }
  }
}

}  // namespace

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

OneNode::OneNode(const NodeCommand& command, std::string session)
    : session_(std::move(session)), program_(command.command.front()) {
  answer_.node = command.node;
  auto child = Child::start(command.command);
  if (child) {
    child_.emplace(std::move(*child));
  } else {
    answer_.problem = child.error();
    over_ = true;
  }
}

int OneNode::output() const {
  return child_ && !over_ ? child_->output() : -1;
}

int OneNode::errors() const {
  return child_ && !over_ ? child_->errors() : -1;
}

void OneNode::read_output() {
  const bool open = drain(child_->output(), [this](std::string_view bytes) {
    lines_.feed(bytes, [this](std::string_view line) { hear(line); });
  });
  if (!open) {
    child_->close_output();
  }
}

void OneNode::read_errors() {
  const bool open = drain(child_->errors(), [this](std::string_view bytes) {
    errors_ += bytes;
    if (errors_.size() > 2 * kMostErrors) {
      errors_.erase(0, errors_.size() - kMostErrors);
    }
  });
  if (!open) {
    child_->close_errors();
  }
}

void OneNode::hear(std::string_view line) {
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
  } else if (message->word == "data" && !message->arguments.empty() &&
             data_.size() + message->arguments.front().size() <= kLargestAnswer) {
    data_ += message->arguments.front();
  } else if (message->word == "end") {
    finish(*message);
  } else if (message->word == "problem") {
    answer_.problem = {.what = argument(*message, 0, kLongestText),
                       .hint = argument(*message, 1, kLongestText)};
    over_ = true;
  }
}

void OneNode::hear_hello(const Message& message) {
  answer_.host = argument(message, 1, kLongestName);
  answer_.job = argument(message, 2, kLongestText);
  ping();
}

void OneNode::ping() {
  ++pings_;
  asked_at_ = now_seconds();
  child_->write(fmt::format("ping {}\n", pings_));
}

void OneNode::hear_pong(const Message& message, double now) {
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

void OneNode::go(double delay) {
  if (child_ && !gone_) {
    gone_ = true;
    child_->write(fmt::format("go {:.6f}\n", delay));
  }
}

void OneNode::finish(const Message& message) {
  auto bytes = decoded(data_);
  if (bytes && std::to_string(bytes->size()) == argument(message, 0, kLongestName)) {
    answer_.capture = std::move(*bytes);
  } else {
    answer_.problem = {.what = "its answer was damaged on the way",
                       .hint = "does the launcher pass standard output through as it is?"};
  }
  data_.clear();
  over_ = true;
}

void OneNode::notice_end() {
  if (over_ || !child_ || child_->output() >= 0) {
    return;
  }
  if (const auto status = child_->ended()) {
    if (child_->errors() >= 0) {
      read_errors();
    }
    explain_end(status_of(*status));
    over_ = true;
  }
}

void OneNode::explain_end(int status) {
  constexpr int kNoSuchProgram = 127;
  const std::string line = last_line(errors_);
  const std::string why = line.empty() ? std::string() : ": " + line;
  answer_.problem.what =
      answer_.host.empty()
          ? fmt::format("{} ended with status {} before ddpdoctor answered{}",
                        base::file_name(program_), status, why)
          : fmt::format("ddpdoctor found the job there and ended with status {}{}", status, why);
  if (status == kNoSuchProgram || status == kNoSuchProgram - 1) {
    answer_.problem.hint =
        "the program must be on each node: --program PATH says where it is there";
  }
}

void OneNode::give_up(double seconds) {
  if (over_) {
    return;
  }
  over_ = true;
  const std::string line = last_line(errors_);
  answer_.problem.what =
      answer_.host.empty()
          ? fmt::format("no answer within {}{}", base::duration(seconds),
                        line.empty() ? "" : "; the last it said: " + line)
          : fmt::format("it found the job and did not finish within {}", base::duration(seconds));
  answer_.problem.hint = "--deadline S waits longer";
}

void OneNode::kill() const {
  if (child_) {
    child_->signal(SIGTERM);
  }
}

bool OneNode::lives() {
  return child_ && !child_->ended();
}

Answer OneNode::take() {
  return std::move(answer_);
}

}  // namespace ddpdoctor::nodes
