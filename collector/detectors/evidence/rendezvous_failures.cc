// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/rendezvous_failures.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "collector/detectors/evidence/known_exceptions.h"

namespace ddpdoctor::detectors {
namespace {

/// A known message of a start-up: it has words of its own.
bool is_told(std::string_view exception) {
  const auto all = known_exceptions();
  return std::any_of(all.begin(), all.end(), [exception](const KnownException& known) {
    return (known.kind == "master-unreachable" || known.kind == "rendezvous-incomplete") &&
           exception.find(known.pattern) != exception.npos &&
           (known.also.empty() || exception.find(known.also) != exception.npos);
  });
}

}  // namespace

bool lacks_environment(std::string_view exception) {
  return exception.find("using env:// rendezvous: environment variable ") != exception.npos;
}

bool says_name_unknown(std::string_view text) {
  // The texts of gai_strerror (glibc, musl), and torch's own.
  constexpr std::array<std::string_view, 7> kWords = {"host not found",
                                                      "(gai error:",
                                                      "Name or service not known",
                                                      "Temporary failure in name resolution",
                                                      "No address associated with hostname",
                                                      "Name does not resolve",
                                                      "nodename nor servname provided"};
  return base::contains_any(text, kWords);
}

std::optional<std::string_view> warning_before_giving_up(std::string_view log) {
  constexpr std::string_view kNoAddress = " cannot be retrieved (gai error: ";
  const std::size_t at = log.rfind(kNoAddress);
  const std::string_view after = log.substr(std::min(at, log.size()));
  const bool gave_up = base::contains(after, "RendezvousConnectionError") ||
                       base::contains(after, "client socket has timed out");
  const bool tried = base::contains(after, "has failed to connect to") ||
                     base::contains(after, "has connected to");
  if (at == log.npos || !gave_up || tried) {
    return std::nullopt;
  }
  const std::size_t begin = log.rfind('\n', at) + 1;  // npos + 1 is 0
  return log.substr(begin, log.find('\n', at) - begin);
}

bool makes_store(const Traceback& traceback) {
  const model::CallSite& raiser = traceback.raiser;
  return traceback.source.find("TCPStore(") != std::string::npos ||
         (raiser.file.ends_with("torch/distributed/rendezvous.py") &&
          raiser.function.ends_with("rendezvous_handler"));
}

bool failed_to_reach_store(const Traceback& traceback) {
  return makes_store(traceback) && !lacks_environment(traceback.exception) &&
         !is_told(traceback.exception) && !is_consequence(traceback);
}

}  // namespace ddpdoctor::detectors
