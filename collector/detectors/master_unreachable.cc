// SPDX-License-Identifier: Apache-2.0
// master-unreachable: ranks cannot reach the rendezvous: nobody listens on MASTER_ADDR:MASTER_PORT,
// or a stranger does.
#include <algorithm>

#include <fmt/format.h>

#include "collector/detectors/agreement.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/known_exceptions.h"
#include "collector/detectors/suspects.h"
#include "collector/detectors/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kKind = "master-unreachable";

model::RankSet ranks_at_rendezvous(const graph::Examination& examination) {
  return ranks_where(examination, [](const graph::Standing& standing) {
    return standing.activity == graph::Activity::kRendezvous;
  });
}

/// Why the rendezvous cannot be reached; empty when it can or when we cannot know.
std::string obstacle(const model::Fact& listen) {
  if (!listen.flag("local").value_or(false)) {
    return {};
  }
  const std::string address = fmt::format("{}:{:.0f}", listen.text("address").value_or("?"),
                                          listen.number("port").value_or(0));
  if (listen.flag("listening") == false) {
    return fmt::format("nobody listens on {}", address);
  }
  if (listen.flag("listener_in_job") == false && listen.number("listener_pid")) {
    return fmt::format("{} belongs to another process: {:.0f} ({})", address,
                       *listen.number("listener_pid"),
                       listen.text("listener_command").value_or("unknown"));
  }
  return {};
}

Findings detect(const graph::Examination& examination) {
  const model::RankSet waiting = ranks_at_rendezvous(examination);
  const auto still = stuck(examination);
  if (waiting.empty() || !still) {
    return findings_from_text(examination, kKind);
  }
  Findings findings;
  for (const model::Fact* listen : model::facts(examination.job, "listen")) {
    const std::string reason = obstacle(*listen);
    if (reason.empty()) {
      continue;
    }
    Finding finding;
    finding.kind = kKind;
    finding.confidence = *still;
    add_waiting(examination, finding);
    finding.summary = fmt::format("{} cannot reach the rendezvous: {}", said(waiting), reason);
    finding.evidence.push_back({.rank = std::nullopt, .text = reason});
    finding.fix =
        "Correct MASTER_ADDR and MASTER_PORT (--rdzv-endpoint) on every node, start rank 0 first, "
        "or choose a free port.";
    findings.push_back(std::move(finding));
  }
  return findings.empty() ? findings_from_text(examination, kKind) : findings;
}

}  // namespace

extern const Detector master_unreachable;
const Detector master_unreachable{
    .kind = kKind,
    .title = "The rendezvous cannot be reached",
    .explanation =
        R"(What you see: ranks stand in init_process_group; "client socket has failed to connect", "Address already in use".

Why: MASTER_ADDR names the wrong machine, MASTER_PORT differs between nodes or belongs to another program, or the rank that
listens (0) was not started.

How it is recognised: who listens on the address the ranks were told; the messages.

Fix:
    $ torchrun --rdzv-endpoint node0:29501 ...)",
    .detect = detect,
    .specificity = kPlaceOfCause,
};

}  // namespace ddpdoctor::detectors
