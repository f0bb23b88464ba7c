// SPDX-License-Identifier: Apache-2.0
// The kernel's sock_diag: tables of sockets by netlink. 25 × cheaper than /proc/net/tcp, whose
// reader walks the whole hash table for every read, and the only place that names the peer of a
// unix socket. Our own network namespace only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "collector/sources/network/sockets.h"

namespace ddpdoctor::sources {

/// inode → inode of the peer for every connected unix socket; empty when the kernel refuses.
std::map<std::uint64_t, std::uint64_t> unix_peers();

/// All TCP sockets, IPv4 and IPv6; nothing when the kernel refuses.
std::optional<std::vector<TcpSocket>> tcp_sockets();

/// inode and peer of one answer of unix_diag (a netlink message); broken ones are left out.
void read_unix_answer(std::span<const std::byte> message,
                      std::map<std::uint64_t, std::uint64_t>& peers);
/// One answer of inet_diag; nothing when it is cut.
std::optional<TcpSocket> read_tcp_answer(std::span<const std::byte> message);

}  // namespace ddpdoctor::sources
