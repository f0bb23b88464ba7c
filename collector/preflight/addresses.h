// SPDX-License-Identifier: Apache-2.0
// Names and addresses as the job will see them. These functions query name servers and other
// machines: use them only in checks, which have a deadline.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>

namespace ddpdoctor::preflight {

/// One address of a name.
struct Address {
  sockaddr_storage bytes{};
  socklen_t length = 0;
  std::string text;  // "10.0.0.1", "::1"
  bool loopback = false;
  bool ours = false;  // belongs to an interface of this machine
};

/// The result of getaddrinfo; `problem` is its error text if there is no address.
struct Resolved {
  std::vector<Address> addresses;
  std::string problem;
};
Resolved resolve(const std::string& name);

/// The result of an attempt to connect.
enum class Reach { kAnswers, kRefused, kSilent, kUnreachable };
Reach reach(const Address& address, int port, std::chrono::milliseconds patience);

/// errno of an attempt to bind the port and listen, as torch's store does; 0 = the port is free.
/// The socket is closed immediately and accepts no connection.
int bind_error(int port);

}  // namespace ddpdoctor::preflight
