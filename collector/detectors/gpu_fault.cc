// SPDX-License-Identifier: Apache-2.0
// gpu-fault: the hardware failed: an Xid in the kernel log, an ECC error, a GPU that fell off the
// bus. Its rank stops, the others spin in NCCL. Never the program's fault.
#include <charconv>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kKind = "gpu-fault";
constexpr std::size_t kLongestLine = 240;

/// Whose GPU: the fact's rank, or that of the process it or the line ("pid=4021") names.
std::optional<model::Rank> rank_of(const model::JobModel& job, const model::Fact& line,
                                   const std::string& text) {
  if (line.rank) {
    return line.rank;
  }
  pid_t pid = line.pid.value_or(0);
  if (const std::size_t at = text.find("pid="); pid == 0 && at != std::string::npos) {
    const char* const begin = text.data() + at + 4;
    std::from_chars(begin, text.data() + text.size(), pid);
  }
  const model::Process* process = model::process(job, pid);
  return process == nullptr ? std::nullopt : served_rank(job, *process);
}

Findings detect(const graph::Examination& examination) {
  Findings findings = findings_from_text(examination, kKind);
  Finding finding;
  finding.kind = kKind;
  for (const model::Fact* line : model::facts(examination.job, "kernel-log")) {
    const std::string text = line->text("text").value_or("");
    const bool is_xid = text.find("NVRM: Xid") != std::string::npos;
    if (line->text("about").value_or(is_xid ? "xid" : "") != "xid") {
      continue;
    }
    const auto rank = rank_of(examination.job, *line, text);
    finding.evidence.push_back(
        {.rank = rank,
         .text = "kernel: " + base::elide(line->text("text").value_or("Xid"), kLongestLine)});
    if (rank) {
      finding.culprits.insert(*rank);
    }
  }
  if (finding.evidence.empty()) {
    return findings;
  }
  finding.confidence = examination.job.progress == model::Progress::kMoving ? Confidence::kPossible
                                                                            : Confidence::kLikely;
  add_where_accused_stand(examination, finding);
  add_waiting(examination, finding);
  finding.summary = finding.culprits.empty()
                        ? "a GPU of this host reported a fault"
                        : fmt::format("the GPU of {} reported a fault{}", said(finding.culprits),
                                      and_who_waits(finding));
  finding.fix =
      "Drain this node and look at dmesg and nvidia-smi -q; the hardware or its driver failed, not "
      "the program.";
  findings.push_back(std::move(finding));
  return findings;
}

}  // namespace

extern const Detector gpu_fault;
const Detector gpu_fault{
    .kind = kKind,
    .title = "A GPU failed",
    .explanation =
        R"(What you see: one rank stops and the others spin at 100 % GPU and low power; dmesg shows "NVRM: Xid".

Why: memory that cannot be corrected, a link or power fault, a driver that lost the device.

How it is recognised: the kernel log and CUDA's messages.

Fix: drain the node, then
    $ nvidia-smi -q -d ECC,PAGE_RETIREMENT
    $ dcgmi diag -r 3)",
    .detect = detect,
    .specificity = kMechanism,
};

}  // namespace ddpdoctor::detectors
