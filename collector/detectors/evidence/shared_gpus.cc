// SPDX-License-Identifier: Apache-2.0
// Every rank of a communicator that finds its GPU taken prints "rank 6 and rank 4 both on CUDA
// device 31000"; the number is the bus of the GPU, so two machines may have the same.
#include "collector/detectors/evidence/shared_gpus.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/traceback_lines.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kMostSharedGpus = 64;
constexpr std::size_t kMostSharedLines = 8;

struct SharedGpu {
  std::string host;    // empty if the line names none
  std::string device;  // "31000"
  model::RankSet ranks;
};

std::optional<model::Rank> rank_after_words(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  return at == text.npos ? std::nullopt : leading_number(text.substr(at + word.size()));
}

/// "node1" of "node1:59522:59993 [0] init.cc:795 NCCL WARN Duplicate GPU …".
std::string host_in_tag(std::string_view before) {
  const std::string_view tag = before.substr(0, before.find(" ["));
  const std::string_view word = tag.substr(tag.rfind(' ') + 1);
  const std::size_t colon = word.find(':');
  return colon == word.npos || before.find(" NCCL ") == before.npos
             ? std::string()
             : base::printable(word.substr(0, colon));
}

std::optional<SharedGpu> shared_in(std::string_view line) {
  const std::size_t at = line.find("Duplicate GPU detected");
  const std::string_view text = line.substr(std::min(at, line.size()));
  const auto one = rank_after_words(text, " : rank ");
  const auto other = rank_after_words(text, " and rank ");
  const std::size_t device = text.find("CUDA device ");
  if (!one || !other || device == text.npos) {
    return std::nullopt;
  }
  const std::string_view bus = text.substr(device + 12);
  return SharedGpu{
      .host = host_in_tag(line.substr(0, at)),
      .device = base::printable(bus.substr(0, bus.find_first_of(" \r\n\\'\"")).substr(0, 32)),
      .ranks = {*one, *other}};
}

/// The exception of torch repeats the line without a host: its ranks are known then.
void add(SharedGpu found, std::vector<SharedGpu>& all) {
  for (SharedGpu& known : all) {
    const bool same_host = known.host == found.host || known.host.empty() || found.host.empty();
    if (known.device == found.device && same_host && !known.ranks.common(found.ranks).empty()) {
      known.host = known.host.empty() ? found.host : known.host;
      known.ranks = known.ranks.united(found.ranks);
      return;
    }
  }
  if (all.size() < kMostSharedGpus) {
    all.push_back(std::move(found));
  }
}

std::string words_for(const std::vector<SharedGpu>& all) {
  constexpr std::size_t kMostTold = 3;
  std::set<std::string> hosts;
  std::vector<std::string> told;
  for (const SharedGpu& one : all) {
    hosts.insert(one.host);
    if (told.size() < kMostTold) {
      told.push_back(fmt::format("{} {} GPU {}", said(one.ranks),
                                 one.ranks.size() == 2 ? "both use" : "all use", one.device));
    }
  }
  const std::string host =
      hosts.size() == 1 && !hosts.begin()->empty() ? " of " + *hosts.begin() : std::string();
  const std::size_t more = all.size() - told.size();
  return fmt::format("{}{}{}", fmt::join(told, ", "), host,
                     more > 0 ? fmt::format(", and {} more", more) : std::string());
}

}  // namespace

std::optional<Finding> shared_gpus(const graph::Examination& examination, std::string_view kind,
                                   std::string_view fix) {
  std::vector<SharedGpu> all;
  Finding finding;
  for (const Sighting& sighting : sightings(examination.job, kind)) {
    if (auto found = shared_in(sighting.line)) {
      add(std::move(*found), all);
      if (finding.evidence.size() < kMostSharedLines) {
        finding.evidence.push_back(
            {.rank = sighting.rank,
             .text = "log: " + base::elide(base::printable(sighting.line), 240)});
      }
      if (sighting.place.known() && finding.locations.empty()) {
        finding.locations.push_back(location(sighting.place, {}, "this line raised"));
      }
    }
  }
  if (all.empty()) {
    return std::nullopt;
  }
  finding.kind = kind;
  for (const SharedGpu& one : all) {
    finding.culprits = finding.culprits.united(one.ranks);
  }
  const bool lived = outlived(examination, std::nullopt);
  finding.confidence = lived ? Confidence::kPossible : Confidence::kLikely;
  finding.summary = words_for(all);
  // One forgotten set_device puts all ranks of a machine on one GPU; several shared GPUs are more
  // processes than GPUs.
  finding.fix = all.size() == 1
                    ? std::string(fix)
                    : "Start one process per GPU: start the launcher once per node (with srun: "
                      "--ntasks-per-node=1 for torchrun or accelerate), or lower --nproc-per-node.";
  return finding;
}

}  // namespace ddpdoctor::detectors
