// SPDX-License-Identifier: Apache-2.0
// Both ends of sockets: TCP by the reversed address pair, unix sockets through the kernel's
// sock_diag.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <sys/types.h>

namespace ddpdoctor::sources {

enum class TcpState { kEstablished, kSynSent, kListen, kCloseWait, kOther };

/// One line of /proc/PID/net/tcp or tcp6. IPv4 addresses inside IPv6 are written as IPv4.
struct TcpSocket {
  std::string local_address;
  int local_port = 0;
  std::string remote_address;
  int remote_port = 0;
  TcpState state = TcpState::kOther;
  std::uint64_t inode = 0;
  std::uint64_t unread_bytes = 0;  // received but not read
  std::uint64_t unsent_bytes = 0;
};

/// The kernel's number of a state (include/net/tcp_states.h).
TcpState tcp_state(int number);

/// The sockets in such a text; skips malformed lines.
std::vector<TcpSocket> parse_tcp(std::string_view text);

/// TCP sockets of every network namespace that processes of a job use.
class TcpTable {
 public:
  /// Reads the namespace of `pid` unless that was done before.
  void read(pid_t pid);
  void add(std::vector<TcpSocket> sockets);

  [[nodiscard]] const TcpSocket* by_inode(std::uint64_t inode) const;
  /// The socket at the other end, if it is on this machine.
  [[nodiscard]] const TcpSocket* peer(const TcpSocket& socket) const;
  /// A socket that listens on this port and address (or on any address).
  [[nodiscard]] const TcpSocket* listener(const std::string& address, int port) const;
  [[nodiscard]] const std::vector<TcpSocket>& all() const {
    return sockets_;
  }

 private:
  using Pair = std::tuple<std::string, int, std::string, int>;

  std::vector<TcpSocket> sockets_;
  std::map<std::uint64_t, std::size_t> by_inode_;
  std::map<Pair, std::size_t> by_pair_;
  std::vector<std::string> namespaces_;
};

}  // namespace ddpdoctor::sources
