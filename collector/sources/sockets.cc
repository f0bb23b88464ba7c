// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/sockets.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/text.h"
#include "base/unique_fd.h"
#include "collector/sources/proc_file.h"

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

TcpState state_of(std::string_view text) {
  // include/net/tcp_states.h
  switch (number<int>(text, kHex).value_or(0)) {
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

std::optional<TcpSocket> parse_line(std::string_view line) {
  const auto fields = words(line);
  constexpr std::size_t kInode = 9;
  TcpSocket socket;
  if (fields.size() <= kInode || !parse_end(fields[1], socket.local_address, socket.local_port) ||
      !parse_end(fields[2], socket.remote_address, socket.remote_port)) {
    return std::nullopt;
  }
  socket.state = state_of(fields[3]);
  const auto queues = base::split(fields[4], ':');
  if (queues.size() == 2) {
    socket.unsent_bytes = number<std::uint64_t>(queues[0], kHex).value_or(0);
    socket.unread_bytes = number<std::uint64_t>(queues[1], kHex).value_or(0);
  }
  socket.inode = number<std::uint64_t>(fields[kInode]).value_or(0);
  return socket;
}

/// A value at an offset of untrusted bytes.
template <typename T>
std::optional<T> value_at(std::span<const std::byte> bytes, std::size_t offset) {
  T value{};
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) {
    return std::nullopt;
  }
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

/// inode and peer of one answer of unix_diag.
void read_unix_answer(std::span<const std::byte> message,
                      std::map<std::uint64_t, std::uint64_t>& peers) {
  const auto answer = value_at<unix_diag_msg>(message, NLMSG_HDRLEN);
  std::size_t at = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(unix_diag_msg));
  while (answer) {
    const auto attribute = value_at<rtattr>(message, at);
    if (!attribute || attribute->rta_len < sizeof(rtattr)) {
      return;
    }
    if (attribute->rta_type == UNIX_DIAG_PEER) {
      if (const auto peer = value_at<std::uint32_t>(message, at + sizeof(rtattr))) {
        peers[answer->udiag_ino] = *peer;
      }
    }
    at += RTA_ALIGN(attribute->rta_len);
  }
}

/// False at the end of the dump.
bool read_unix_answers(std::span<const std::byte> bytes,
                       std::map<std::uint64_t, std::uint64_t>& peers) {
  std::size_t at = 0;
  while (const auto header = value_at<nlmsghdr>(bytes, at)) {
    if (header->nlmsg_type == NLMSG_DONE || header->nlmsg_type == NLMSG_ERROR ||
        header->nlmsg_len < sizeof(nlmsghdr) || header->nlmsg_len > bytes.size() - at) {
      return false;
    }
    read_unix_answer(bytes.subspan(at, header->nlmsg_len), peers);
    at += NLMSG_ALIGN(header->nlmsg_len);
  }
  return true;
}

bool send_unix_request(int fd) {
  struct Request {
    nlmsghdr header;
    unix_diag_req request;
  } request{};
  request.header.nlmsg_len = sizeof(request);
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.request.sdiag_family = AF_UNIX;
  request.request.udiag_states = ~0U;
  request.request.udiag_show = UDIAG_SHOW_PEER;
  return ::send(fd, &request, sizeof(request), 0) == static_cast<ssize_t>(sizeof(request));
}

}  // namespace

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

std::map<std::uint64_t, std::uint64_t> unix_peers() {
  std::map<std::uint64_t, std::uint64_t> peers;
  const base::UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  constexpr timeval kDeadline{.tv_sec = 0, .tv_usec = 200'000};
  if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kDeadline, sizeof(kDeadline)) != 0 ||
      !send_unix_request(fd.get())) {
    return peers;
  }
  std::array<std::byte, 32768> buffer{};
  while (true) {
    const ssize_t got = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
    if (got <= 0 ||
        !read_unix_answers(std::span(buffer).first(static_cast<std::size_t>(got)), peers)) {
      return peers;
    }
  }
}

}  // namespace ddpdoctor::sources
