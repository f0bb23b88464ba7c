// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/network/sockets.h"

#include <algorithm>
#include <array>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/text.h"
#include "collector/sources/network/sock_diag.h"
#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::sources {

namespace {

constexpr std::size_t kHexWord = 8;  // the kernel prints addresses as 32-bit words in host order
constexpr int kHex = 16;

/// "0100007F" or 32 digits → "127.0.0.1" or "::1"; empty when malformed.
std::string address_text(std::string_view hex) {
  std::array<std::uint32_t, 4> parts{};
  const std::size_t count = hex.size() / kHexWord;
  if (hex.size() % kHexWord != 0 || (count != 1 && count != parts.size())) {
    return {};
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto part = number<std::uint32_t>(hex.substr(i * kHexWord, kHexWord), kHex);
    if (!part) {
      return {};
    }
    parts.at(i) = *part;
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool mapped = count == 4 && parts[0] == 0 && parts[1] == 0 && parts[2] == htonl(0xFFFF);
  if (count == 1 || mapped) {
    ::inet_ntop(AF_INET, mapped ? &parts[3] : parts.data(), text.data(), text.size());
  } else {
    ::inet_ntop(AF_INET6, parts.data(), text.data(), text.size());
  }
  return text.data();
}

bool parse_end(std::string_view text, std::string& address, int& port) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    return false;
  }
  address = address_text(text.substr(0, colon));
  const auto value = number<int>(text.substr(colon + 1), kHex);
  port = value.value_or(0);
  return value && !address.empty();
}

std::optional<TcpSocket> parse_line(std::string_view line) {
  const auto fields = words(line);
  constexpr std::size_t kInode = 9;
  TcpSocket socket;
  if (fields.size() <= kInode || !parse_end(fields[1], socket.local_address, socket.local_port) ||
      !parse_end(fields[2], socket.remote_address, socket.remote_port)) {
    return std::nullopt;
  }
  socket.state = tcp_state(number<int>(fields[3], kHex).value_or(0));
  const auto queues = base::split(fields[4], ':');
  if (queues.size() == 2) {
    socket.unsent_bytes = number<std::uint64_t>(queues[0], kHex).value_or(0);
    socket.unread_bytes = number<std::uint64_t>(queues[1], kHex).value_or(0);
  }
  socket.inode = number<std::uint64_t>(fields[kInode]).value_or(0);
  return socket;
}

}  // namespace

TcpState tcp_state(int number) {
  switch (number) {
    case 1:
      return TcpState::kEstablished;
    case 2:
      return TcpState::kSynSent;
    case 8:
      return TcpState::kCloseWait;
    case 10:
      return TcpState::kListen;
    default:
      return TcpState::kOther;
  }
}

std::vector<TcpSocket> parse_tcp(std::string_view text) {
  std::vector<TcpSocket> sockets;
  for (const std::string_view line : base::split(text, '\n')) {
    if (auto socket = parse_line(line)) {
      sockets.push_back(std::move(*socket));
    }
  }
  return sockets;
}

void TcpTable::read(pid_t pid) {
  const std::string place = read_link(proc_path(pid, "ns/net")).value_or("");
  if (std::find(namespaces_.begin(), namespaces_.end(), place) != namespaces_.end()) {
    return;
  }
  namespaces_.push_back(place);
  auto sockets = place == read_link("/proc/self/ns/net") ? tcp_sockets() : std::nullopt;
  if (sockets) {
    add(std::move(*sockets));
    return;
  }
  for (const char* name : {"net/tcp", "net/tcp6"}) {
    if (const auto text = read_file(proc_path(pid, name), kLargeFile)) {
      add(parse_tcp(*text));
    }
  }
}

void TcpTable::add(std::vector<TcpSocket> sockets) {
  for (TcpSocket& socket : sockets) {
    const std::size_t index = sockets_.size();
    if (socket.inode != 0) {
      by_inode_.emplace(socket.inode, index);
    }
    by_pair_.emplace(
        Pair(socket.local_address, socket.local_port, socket.remote_address, socket.remote_port),
        index);
    sockets_.push_back(std::move(socket));
  }
}

const TcpSocket* TcpTable::by_inode(std::uint64_t inode) const {
  const auto found = by_inode_.find(inode);
  return found == by_inode_.end() ? nullptr : &sockets_[found->second];
}

const TcpSocket* TcpTable::peer(const TcpSocket& socket) const {
  const auto found = by_pair_.find(
      Pair(socket.remote_address, socket.remote_port, socket.local_address, socket.local_port));
  return found == by_pair_.end() ? nullptr : &sockets_[found->second];
}

const TcpSocket* TcpTable::listener(const std::string& address, int port) const {
  const auto found = std::find_if(sockets_.begin(), sockets_.end(), [&](const TcpSocket& socket) {
    const bool any = socket.local_address == "0.0.0.0" || socket.local_address == "::";
    return socket.state == TcpState::kListen && socket.local_port == port &&
           (any || socket.local_address == address);
  });
  return found == sockets_.end() ? nullptr : &*found;
}

}  // namespace ddpdoctor::sources
