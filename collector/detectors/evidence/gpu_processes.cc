// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/gpu_processes.h"

#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/setup_steps.h"
#include "collector/detectors/evidence/traceback_lines.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/wording.h"

namespace ddpdoctor::detectors {
namespace {

/// "GPU 0 has a total capacity of 31.74 GiB".
std::optional<int> full_gpu(std::string_view line) {
  constexpr std::string_view kGpu = ". GPU ";
  const std::size_t at = line.find(kGpu);
  return at == line.npos ? std::nullopt : leading_number(line.substr(at + kGpu.size()));
}

/// "Process 101553 has 1.19 GiB memory in use. Process 101552 has …".
model::RankSet listed_ranks(std::string_view line, const std::map<pid_t, model::Rank>& ranks) {
  constexpr std::string_view kProcess = "Process ";
  model::RankSet out;
  for (std::size_t at = line.find(kProcess); at != line.npos; at = line.find(kProcess, at + 1)) {
    const auto pid = leading_number(line.substr(at + kProcess.size()));
    const auto known = pid ? ranks.find(*pid) : ranks.end();
    if (known != ranks.end()) {
      out.insert(known->second);
    }
  }
  return out;
}

}  // namespace

std::optional<Finding> ranks_on_full_gpu(const graph::Examination& examination,
                                         std::string_view kind, std::string_view fix) {
  std::map<pid_t, model::Rank> ranks;
  for (const LogStream& stream : log_streams(examination.job)) {
    for (std::size_t i = 0; i < stream.size(); ++i) {
      const std::string_view line = stream[i].text;
      if (line.find("CUDA out of memory") == line.npos ||
          line.find(" memory in use. ") == line.npos) {
        continue;
      }
      ranks = ranks.empty() ? ranks_by_setup(examination.job) : ranks;
      model::RankSet others = listed_ranks(line, ranks);
      if (stream[i].rank) {
        others = others.minus({*stream[i].rank});
      }
      if (others.empty()) {
        continue;
      }
      Finding finding;
      finding.kind = kind;
      finding.confidence = Confidence::kLikely;
      finding.culprits = others;
      const auto gpu = full_gpu(line);
      const std::string whose = gpu ? fmt::format("GPU {}", *gpu) : "a GPU";
      finding.summary = fmt::format(
          "{} of {}, whose memory ran out{}", ranks_do(others, "uses memory", "use memory"), whose,
          stream[i].rank ? fmt::format(" in rank {}", *stream[i].rank) : "");
      finding.fix = fix;
      finding.evidence.push_back(
          {.rank = stream[i].rank, .text = "log: " + base::elide(base::printable(line), 240)});
      if (const model::CallSite site = user_place_above(stream, i); site.known()) {
        finding.locations.push_back(
            location(site, stream[i].rank ? model::RankSet{*stream[i].rank} : model::RankSet{},
                     "had no memory left here"));
      }
      return finding;
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors
