// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/network/sock_diag.h"

#include <array>
#include <cstring>
#include <functional>

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/unique_fd.h"

namespace ddpdoctor::sources {

namespace {

using Message = std::span<const std::byte>;
using Take = std::function<void(Message)>;

/// Reads a value at a byte offset of the kernel's answer.
template <typename T>
std::optional<T> value_at(Message bytes, std::size_t offset) {
  T value{};
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) {
    return std::nullopt;
  }
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

enum class Dump { kGoesOn, kEnds, kFails };

/// Passes every answer of one datagram to `take`.
Dump read_answers(Message bytes, const Take& take) {
  std::size_t at = 0;
  while (const auto header = value_at<nlmsghdr>(bytes, at)) {
    if (header->nlmsg_type == NLMSG_DONE) {
      return Dump::kEnds;
    }
    if (header->nlmsg_type == NLMSG_ERROR || header->nlmsg_len < sizeof(nlmsghdr) ||
        header->nlmsg_len > bytes.size() - at) {
      return Dump::kFails;
    }
    take(bytes.subspan(at, header->nlmsg_len));
    at += NLMSG_ALIGN(header->nlmsg_len);
  }
  return Dump::kGoesOn;
}

/// Requests a dump and reads it to its end; false if the kernel refuses or does not answer.
template <typename Request>
bool dump(const Request& body, const Take& take) {
  struct Whole {
    nlmsghdr header;
    Request body;
  } request{};
  request.header.nlmsg_len = sizeof(request);
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.body = body;
  const base::UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  constexpr timeval kDeadline{.tv_sec = 0, .tv_usec = 200'000};
  if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kDeadline, sizeof(kDeadline)) != 0 ||
      ::send(fd.get(), &request, sizeof(request), 0) < 0) {
    return false;
  }
  std::array<std::byte, 65536> buffer{};
  while (true) {
    const ssize_t got = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
    const Dump state =
        got <= 0 ? Dump::kFails
                 : read_answers(Message(buffer).first(static_cast<std::size_t>(got)), take);
    if (state != Dump::kGoesOn) {
      return state == Dump::kEnds;
    }
  }
}

std::string address_of(const std::uint32_t (&words)[4], int family) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool mapped =
      family == AF_INET6 && words[0] == 0 && words[1] == 0 && words[2] == htonl(0xFFFF);
  const void* bytes = mapped ? &words[3] : &words[0];
  return ::inet_ntop(mapped ? AF_INET : family, bytes, text.data(), text.size()) == nullptr
             ? std::string()
             : std::string(text.data());
}

}  // namespace

void read_unix_answer(Message message, std::map<std::uint64_t, std::uint64_t>& peers) {
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

std::optional<TcpSocket> read_tcp_answer(Message message) {
  const auto answer = value_at<inet_diag_msg>(message, NLMSG_HDRLEN);
  if (!answer || (answer->idiag_family != AF_INET && answer->idiag_family != AF_INET6)) {
    return std::nullopt;
  }
  return TcpSocket{.local_address = address_of(answer->id.idiag_src, answer->idiag_family),
                   .local_port = ntohs(answer->id.idiag_sport),
                   .remote_address = address_of(answer->id.idiag_dst, answer->idiag_family),
                   .remote_port = ntohs(answer->id.idiag_dport),
                   .state = tcp_state(answer->idiag_state),
                   .inode = answer->idiag_inode,
                   .unread_bytes = answer->idiag_rqueue,
                   .unsent_bytes = answer->idiag_wqueue};
}

std::map<std::uint64_t, std::uint64_t> unix_peers() {
  std::map<std::uint64_t, std::uint64_t> peers;
  unix_diag_req request{};
  request.sdiag_family = AF_UNIX;
  request.udiag_states = ~0U;
  request.udiag_show = UDIAG_SHOW_PEER;
  dump(request, [&peers](Message message) { read_unix_answer(message, peers); });
  return peers;
}

std::optional<std::vector<TcpSocket>> tcp_sockets() {
  std::vector<TcpSocket> sockets;
  for (const int family : {AF_INET, AF_INET6}) {
    inet_diag_req_v2 request{};
    request.sdiag_family = static_cast<std::uint8_t>(family);
    request.sdiag_protocol = IPPROTO_TCP;
    request.idiag_states = ~0U;
    const bool whole = dump(request, [&sockets](Message message) {
      if (auto socket = read_tcp_answer(message)) {
        sockets.push_back(std::move(*socket));
      }
    });
    if (!whole) {
      return std::nullopt;
    }
  }
  return sockets;
}

}  // namespace ddpdoctor::sources
