// SPDX-License-Identifier: Apache-2.0
// Functions of NCCL 2.4 – 2.28: bootstrap.cc, socket.h, misc/socket.cc. The thread that makes the
// communicator is often not the one that the program waits in.
#include "collector/detectors/evidence/nccl_bootstrap.h"

#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

enum class BootstrapSide { kNone, kConnects, kAccepts };

BootstrapSide side_of(const model::Thread& thread) {
  constexpr std::array<std::string_view, 5> kConnects = {"bootstrapNetConnect", "ncclSocketConnect",
                                                         "connectAddress", "socketStartConnect",
                                                         "socketPollConnect"};
  constexpr std::array<std::string_view, 3> kAccepts = {"bootstrapNetAccept", "ncclSocketAccept",
                                                        "socketTryAccept"};
  BootstrapSide side = BootstrapSide::kNone;
  for (const model::Frame& frame : thread.frames) {  // innermost first
    if (side == BootstrapSide::kNone) {
      side = base::begins_with_any(frame.function, kConnects)  ? BootstrapSide::kConnects
             : base::begins_with_any(frame.function, kAccepts) ? BootstrapSide::kAccepts
                                                               : side;
    }
    const bool of_rank = frame.function.starts_with("bootstrap") &&
                         !frame.function.starts_with("bootstrapRoot") &&
                         !frame.function.starts_with("bootstrapNet");
    if (of_rank && side != BootstrapSide::kNone) {
      return side;
    }
  }
  return BootstrapSide::kNone;  // of the root's own thread, or of a transport
}

struct Sides {
  model::RankSet connecting;
  model::RankSet accepting;
};

Sides sides_of_bootstrap(const graph::Examination& examination) {
  Sides out;
  for (const graph::Standing& standing : examination.standings) {
    if (standing.process == nullptr) {
      continue;
    }
    for (const model::Thread& thread : standing.process->threads) {
      const BootstrapSide side = side_of(thread);
      if (side != BootstrapSide::kNone) {
        (side == BootstrapSide::kConnects ? out.connecting : out.accepting).insert(standing.rank);
      }
    }
  }
  return out;
}

}  // namespace

std::optional<Finding> stuck_in_bootstrap(const graph::Examination& examination,
                                          std::string_view kind) {
  const Sides sides = sides_of_bootstrap(examination);
  const auto still = stuck(examination);
  if (!still || sides.connecting.empty() || sides.accepting.empty() ||
      !sides.connecting.common(sides.accepting).empty()) {
    return std::nullopt;
  }
  Finding finding;
  finding.kind = kind;
  finding.confidence = *still;
  add_waiting(examination, finding);
  finding.waiting = finding.waiting.united(sides.connecting).united(sides.accepting);
  finding.summary = fmt::format(
      "NCCL's setup does not finish: {} {} in connect() of its bootstrap, {} {} in accept()",
      said(sides.connecting), is_or_are(sides.connecting), said(sides.accepting),
      is_or_are(sides.accepting));
  finding.evidence.push_back(
      {.rank = sides.connecting.values().front(),
       .text = fmt::format("stack: {} without an answer: the address or the port is unreachable",
                           ranks_do(sides.connecting, "connects", "connect"))});
  finding.fix =
      "Set NCCL_SOCKET_IFNAME on every node to an interface that reaches the other nodes, and open "
      "NCCL's ports in the firewall. NCCL_DEBUG=INFO prints the address in use.";
  return finding;
}

}  // namespace ddpdoctor::detectors
