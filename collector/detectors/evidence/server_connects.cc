// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/server_connects.h"

#include <string>

#include <fmt/format.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

std::string without_quotes(std::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == text.back() &&
                      (text.front() == '\'' || text.front() == '"');
  return std::string(quoted ? text.substr(1, text.size() - 2) : text);
}

/// The address to which a rank connects, from torch's own frame: "127.0.0.1:29501".
std::string connects_to(const model::Thread& thread) {
  const model::Frame* maker =
      model::find_python_frame(thread, "_create_c10d_store", "torch/distributed/rendezvous.py");
  const bool connects = model::has_native_frame(thread, "TCPClient::connect") ||
                        model::has_native_frame(thread, "SocketConnectOp");
  if (maker == nullptr || !connects) {
    return {};
  }
  std::string host;
  std::string port;
  for (const auto& [name, value] : maker->locals) {
    if (name == "hostname" || name == "port") {
      (name == "port" ? port : host) = without_quotes(value);
    }
  }
  return host.empty() || port.empty() ? std::string() : host + ":" + port;
}

}  // namespace

std::optional<Finding> server_connects(const graph::Examination& examination, std::string_view kind,
                                       const model::RankSet& waiting, Confidence still) {
  const graph::Standing* first = waiting.contains(0) ? examination.standing(0) : nullptr;
  const std::string address =
      first == nullptr || first->thread == nullptr ? std::string() : connects_to(*first->thread);
  if (address.empty()) {
    return std::nullopt;
  }
  Finding finding;
  finding.kind = kind;
  finding.confidence = still;
  add_waiting(examination, finding);
  finding.summary = fmt::format(
      "{} cannot reach the rendezvous: no process answers at {}; rank 0, which has to serve it, "
      "tries to connect there, too",
      said(waiting), address);
  finding.evidence.push_back(
      {.rank = 0, .text = fmt::format("rank 0 is in TCPClient::connect to {}", address)});
  const model::Frame* tcp = model::find_python_frame(*first->thread, "_tcp_rendezvous_handler");
  finding.fix = tcp == nullptr
                    ? "Set MASTER_ADDR to an address of the machine of rank 0."
                    : "Use init_method=\"env://\" (the default): under torchrun no rank serves the "
                      "port of init_method=\"tcp://…\" (TORCHELASTIC_USE_AGENT_STORE).";
  return finding;
}

}  // namespace ddpdoctor::detectors
