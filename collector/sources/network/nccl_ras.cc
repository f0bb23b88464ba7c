// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/network/nccl_ras.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <poll.h>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/socket.h>

#include "base/unique_fd.h"

namespace ddpdoctor::sources {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kLongestAnswer = std::size_t{16} << 20U;
constexpr std::size_t kLongestLine = 4096;
constexpr int kProtocol = 2;

/// A line-based conversation with one deadline.
class Talk {
 public:
  Talk(base::UniqueFd fd, std::string peer, Clock::time_point deadline)
      : fd_(std::move(fd)), peer_(std::move(peer)), deadline_(deadline) {}

  base::Result<bool> say(std::string_view line) {
    std::string text = std::string(line) + "\n";
    std::string_view left = text;
    while (!left.empty()) {
      TRY(wait_for(POLLOUT));
      const ssize_t sent = ::send(fd_.get(), left.data(), left.size(), MSG_NOSIGNAL);
      if (sent < 0) {
        return failed(std::strerror(errno));
      }
      left.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  base::Result<std::string> hear_line() {
    while (true) {
      if (const std::size_t end = heard_.find('\n'); end != std::string::npos) {
        std::string line = heard_.substr(0, end);
        heard_.erase(0, end + 1);
        return line;
      }
      if (heard_.size() > kLongestLine) {
        return failed("a line without end");
      }
      if (!TRY(hear_more())) {
        return failed("closed the connection");
      }
    }
  }

  /// Reads until the other side closes.
  base::Result<std::string> hear_rest() {
    while (TRY(hear_more())) {
      if (heard_.size() > kLongestAnswer) {
        return failed("an answer of more than 16 MiB");
      }
    }
    return std::move(heard_);
  }

  [[nodiscard]] tl::unexpected<base::Error> failed(std::string_view why) const {
    return base::failure(fmt::format("NCCL RAS at {}: {}", peer_, why),
                         "NCCL_RAS_ADDR names another address; NCCL_RAS_ENABLE=0 turns it off");
  }

 private:
  base::Result<bool> wait_for(short event) {
    pollfd one{.fd = fd_.get(), .events = event, .revents = 0};
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
    if (left <= 0 || ::poll(&one, 1, static_cast<int>(left)) <= 0) {
      return failed("no answer in time");
    }
    return true;
  }

  base::Result<bool> hear_more() {
    TRY(wait_for(POLLIN));
    std::array<char, 65536> bytes{};
    const ssize_t got = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (got < 0) {
      return failed(std::strerror(errno));
    }
    heard_.append(bytes.data(), static_cast<std::size_t>(got));
    return got > 0;
  }

  base::UniqueFd fd_;
  std::string peer_;
  Clock::time_point deadline_;
  std::string heard_;
};

base::Result<Talk> connect_to(const RasQuestion& question) {
  const Clock::time_point deadline = Clock::now() + question.deadline;
  const std::string peer = question.host + ":" + question.port;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;  // the name server may be what hangs
  addrinfo* found = nullptr;
  const std::string host = question.host == "localhost" ? "127.0.0.1" : question.host;
  if (::getaddrinfo(host.c_str(), question.port.c_str(), &hints, &found) != 0) {
    return base::failure(fmt::format("NCCL RAS at {}: not an address", peer),
                         "write it as 127.0.0.1:28028");
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> free_it(found, &::freeaddrinfo);
  base::UniqueFd fd(
      ::socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  Talk talk(base::UniqueFd(), peer, deadline);
  if (!fd) {
    return talk.failed(std::strerror(errno));
  }
  if (::connect(fd.get(), found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS) {
    return talk.failed(std::strerror(errno));
  }
  return Talk(std::move(fd), peer, deadline);
}

}  // namespace

RasQuestion ras_question(const std::string& address) {
  RasQuestion question;
  const std::size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  if (!host.empty()) {
    question.host = host;
  }
  if (colon != std::string::npos && colon + 1 < address.size()) {
    question.port = address.substr(colon + 1);
  }
  return question;
}

base::Result<std::string> ask_ras(const RasQuestion& question) {
  Talk talk = TRY(connect_to(question));
  TRY(talk.say(fmt::format("CLIENT PROTOCOL {}", kProtocol)));
  const std::string hello = TRY(talk.hear_line());
  constexpr std::string_view kHello = "SERVER PROTOCOL ";
  int spoken = 0;
  if (!hello.starts_with(kHello) ||
      std::from_chars(hello.data() + kHello.size(), hello.data() + hello.size(), spoken).ec !=
          std::errc{}) {
    return talk.failed("something else listens there");
  }
  if (spoken < kProtocol) {
    return talk.failed(fmt::format("speaks protocol {}, {} is needed", spoken, kProtocol));
  }
  TRY(talk.say("TIMEOUT 2"));
  if (TRY(talk.hear_line()) != "OK") {
    return talk.failed("refuses a time limit");
  }
  TRY(talk.say("SET FORMAT json"));
  if (TRY(talk.hear_line()) != "OK") {
    return talk.failed("does not answer in JSON; NCCL 2.28.7 or newer does");
  }
  TRY(talk.say("VERBOSE STATUS"));
  return talk.hear_rest();
}

}  // namespace ddpdoctor::sources
