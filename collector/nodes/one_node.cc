// SPDX-License-Identifier: Apache-2.0
#include "collector/nodes/one_node.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace ddpdoctor::nodes {
namespace {

constexpr std::size_t kMostErrors = 16384;

/// Reads what is available; false at the end of the stream.
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

OneNode::OneNode(const NodeCommand& command, std::string session)
    : program_(command.command.front()),
      talk_(command.node, std::move(session), [this](const std::string& text) {
        if (child_) {
          child_->write(text);
        }
      }) {
  auto child = Child::start(command.command);
  if (child) {
    child_.emplace(std::move(*child));
  } else {
    talk_.fail(child.error());
  }
}

int OneNode::output() const {
  return child_ && !talk_.over() ? child_->output() : -1;
}

int OneNode::errors() const {
  return child_ && !talk_.over() ? child_->errors() : -1;
}

void OneNode::read_output() {
  const bool open = drain(child_->output(), [this](std::string_view bytes) {
    lines_.feed(bytes, [this](std::string_view line) { talk_.hear(line); });
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

void OneNode::notice_end() {
  if (talk_.over() || !child_ || child_->output() >= 0) {
    return;
  }
  if (const auto status = child_->ended()) {
    if (child_->errors() >= 0) {
      read_errors();
    }
    explain_end(status_of(*status));
  }
}

void OneNode::explain_end(int status) {
  constexpr int kNoSuchProgram = 127;
  const std::string line = last_line(errors_);
  const std::string why = line.empty() ? std::string() : ": " + line;
  base::Error problem;
  problem.what =
      talk_.host().empty()
          ? fmt::format("{} ended with status {} before ddpdoctor answered{}",
                        base::file_name(program_), status, why)
          : fmt::format("ddpdoctor found the job there and ended with status {}{}", status, why);
  if (status == kNoSuchProgram || status == kNoSuchProgram - 1) {
    problem.hint = "the program must be on each node: --program PATH says where it is there";
  }
  talk_.fail(std::move(problem));
}

void OneNode::give_up(double seconds) {
  talk_.give_up(seconds, last_line(errors_));
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
  return talk_.take();
}

}  // namespace ddpdoctor::nodes
