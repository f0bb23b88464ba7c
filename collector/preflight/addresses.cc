// SPDX-License-Identifier: Apache-2.0
#include "collector/preflight/addresses.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <netdb.h>
#include <poll.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "base/unique_fd.h"
#include "collector/preflight/name_service.h"

namespace ddpdoctor::preflight {

namespace {

template <typename As>
As bytes_as(const sockaddr* address) {
  As out{};
  std::memcpy(&out, address, sizeof out);
  return out;
}

std::string text_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  if (address->sa_family == AF_INET) {
    const auto four = bytes_as<sockaddr_in>(address);
    ::inet_ntop(AF_INET, &four.sin_addr, buffer.data(), buffer.size());
  } else if (address->sa_family == AF_INET6) {
    const auto six = bytes_as<sockaddr_in6>(address);
    ::inet_ntop(AF_INET6, &six.sin6_addr, buffer.data(), buffer.size());
  }
  return buffer.data();
}

std::vector<std::string> own_addresses() {
  ifaddrs* first = nullptr;
  std::vector<std::string> found;
  if (::getifaddrs(&first) != 0) {
    return found;
  }
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr != nullptr &&
        (each->ifa_addr->sa_family == AF_INET || each->ifa_addr->sa_family == AF_INET6)) {
      found.push_back(text_of(each->ifa_addr));
    }
  }
  ::freeifaddrs(first);
  return found;
}

void set_port(Address& address, int port) {
  const in_port_t number = htons(static_cast<std::uint16_t>(port));
  const std::size_t at = address.bytes.ss_family == AF_INET ? offsetof(sockaddr_in, sin_port)
                                                            : offsetof(sockaddr_in6, sin6_port);
  std::array<std::byte, sizeof(sockaddr_storage)> raw{};
  std::memcpy(raw.data(), &address.bytes, raw.size());
  std::memcpy(raw.data() + at, &number, sizeof number);
  std::memcpy(&address.bytes, raw.data(), raw.size());
}

const sockaddr* generic(const Address& address) {
  // The socket interface takes every kind of address through this type.
  return reinterpret_cast<const sockaddr*>(&address.bytes);  // NOLINT
}

Reach reach_by_error(int error) {
  return error == ECONNREFUSED ? Reach::kRefused
         : error == ETIMEDOUT  ? Reach::kSilent
                               : Reach::kUnreachable;
}

int bind_error_of(int family, int port) {
  const base::UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) {
    return errno == EAFNOSUPPORT ? 0 : errno;
  }
  const int yes = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  Address any;
  any.bytes.ss_family = static_cast<sa_family_t>(family);
  any.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (family == AF_INET6) {
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
  }
  set_port(any, port);
  if (::bind(fd.get(), generic(any), any.length) != 0) {
    return errno == EADDRNOTAVAIL && family == AF_INET6 ? 0 : errno;
  }
  return ::listen(fd.get(), 1) == 0 ? 0 : errno;
}

#ifdef DDPDOCTOR_STATIC
constexpr bool kStatic = true;
#else
constexpr bool kStatic = false;
#endif
constexpr std::chrono::seconds kPatienceWithGetent{30};  // longer than any check may take

void add_addresses(const std::string& name, Resolved& out) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (const int error = ::getaddrinfo(name.c_str(), nullptr, &wanted, &first); error != 0) {
    out.problem = ::gai_strerror(error);
    return;
  }
  const auto ours = own_addresses();
  for (const addrinfo* each = first; each != nullptr; each = each->ai_next) {
    if (each->ai_family != AF_INET && each->ai_family != AF_INET6) {
      continue;
    }
    Address address;
    std::memcpy(&address.bytes, each->ai_addr,
                std::min<std::size_t>(each->ai_addrlen, sizeof address.bytes));
    address.length = each->ai_addrlen;
    address.text = text_of(each->ai_addr);
    address.loopback = address.text.starts_with("127.") || address.text == "::1";
    address.ours =
        address.loopback || std::find(ours.begin(), ours.end(), address.text) != ours.end();
    out.addresses.push_back(std::move(address));
  }
  ::freeaddrinfo(first);
}

}  // namespace

Resolved resolve(const std::string& name) {
  Resolved out;
  const Names names = kStatic ? ask_getent(name, kPatienceWithGetent) : Names{};
  if (!names.asked) {
    add_addresses(name, out);
    return out;
  }
  for (const std::string& address : names.addresses) {
    add_addresses(address, out);
  }
  if (out.addresses.empty() && out.problem.empty()) {
    out.problem = ::gai_strerror(EAI_NONAME);
  }
  return out;
}

Reach reach(const Address& address, int port, std::chrono::milliseconds patience) {
  const base::UniqueFd fd(
      ::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) {
    return Reach::kUnreachable;
  }
  Address target = address;
  set_port(target, port);
  if (::connect(fd.get(), generic(target), target.length) == 0) {
    return Reach::kAnswers;
  }
  if (errno != EINPROGRESS) {
    return reach_by_error(errno);
  }
  pollfd waiting{.fd = fd.get(), .events = POLLOUT, .revents = 0};
  if (::poll(&waiting, 1, static_cast<int>(patience.count())) <= 0) {
    return Reach::kSilent;
  }
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? Reach::kAnswers : reach_by_error(error);
}

int bind_error(int port) {
  const int four = bind_error_of(AF_INET, port);
  return four != 0 ? four : bind_error_of(AF_INET6, port);
}

}  // namespace ddpdoctor::preflight
