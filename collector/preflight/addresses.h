// SPDX-License-Identifier: Apache-2.0
// Names and addresses as the job will see them. These ask name servers and other machines: only
// for checks, which have a deadline.
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
  bool ours = false;  // of an interface of this machine
};

/// What getaddrinfo says; `problem` is its sentence when there is none.
struct Resolved {
  std::vector<Address> addresses;
  std::string problem;
};
Resolved resolve(const std::string& name);

/// How an attempt to connect ended.
enum class Reach { kAnswers, kRefused, kSilent, kUnreachable };
Reach reach(const Address& address, int port, std::chrono::milliseconds patience);

/// errno of an attempt to bind the port and listen, as torch's store does; 0 = the port is free.
/// The socket is closed at once and never accepts anything.
int bind_error(int port);

}  // namespace ddpdoctor::preflight
