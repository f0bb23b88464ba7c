// SPDX-License-Identifier: Apache-2.0
#include "cli/metrics_server.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <poll.h>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

namespace ddpdoctor::cli {
namespace {

constexpr int kPollMilliseconds = 100;  // milliseconds between two checks of the stop flag
constexpr int kBacklog = 16;
constexpr int kSecondsForAClient = 2;  // seconds for one client

std::string reply(std::string_view status, std::string_view body) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
      "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
      status, body.size(), body);
}

bool asks_for_metrics(std::string_view request) {
  constexpr std::string_view kGet = "GET /metrics";
  return request.starts_with(kGet) && request.size() > kGet.size() &&
         (request[kGet.size()] == ' ' || request[kGet.size()] == '?');
}

void send_all(int client, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(client, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return;
    }
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

int port_of(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return 0;
  }
  return address.ss_family == AF_INET6
             ? ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port)
             : ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

base::Result<std::unique_ptr<MetricsServer>> MetricsServer::listen(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  std::string host = colon == std::string::npos ? "" : address.substr(0, colon);
  const std::string port = colon == std::string::npos ? address : address.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints{};
  hints.ai_family = host.empty() ? AF_INET : AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed =
      ::getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  if (failed != 0 || port.empty()) {
    return base::failure(fmt::format("--metrics {}: not an address", address),
                         "expected [HOST]:PORT, such as :9095 or 127.0.0.1:9095");
  }
  base::UniqueFd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (!socket || ::bind(socket.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    return base::failure(fmt::format("--metrics {}: {}", address, std::strerror(errno)),
                         "name another port");
  }
  const int number = port_of(socket.get());
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(socket), number));
}

MetricsServer::MetricsServer(base::UniqueFd socket, int port)
    : socket_(std::move(socket)), port_(port), thread_([this] { work(); }) {}

MetricsServer::~MetricsServer() {
  stop_ = true;
  thread_.join();
}

void MetricsServer::show(std::string page) {
  const std::scoped_lock lock(mutex_);
  page_ = std::move(page);
}

void MetricsServer::work() {
  while (!stop_) {
    pollfd waiting{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, kPollMilliseconds) <= 0) {
      continue;
    }
    const base::UniqueFd client(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (client) {
      serve(client.get());
    }
  }
}

void MetricsServer::serve(int client) {
  const timeval patience{.tv_sec = kSecondsForAClient, .tv_usec = 0};
  ::setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  std::array<char, 4096> request{};
  const ssize_t length = ::recv(client, request.data(), request.size(), 0);
  if (length <= 0) {
    return;
  }
  const bool known = asks_for_metrics({request.data(), static_cast<std::size_t>(length)});
  std::string page;
  if (known) {
    const std::scoped_lock lock(mutex_);
    page = page_;
  }
  send_all(client, known ? reply("200 OK", page) : reply("404 Not Found", "see /metrics\n"));
}

}  // namespace ddpdoctor::cli
