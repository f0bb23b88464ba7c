// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/refused_pair.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/graph/history.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

// NCCL, src/misc/socket.cc (ncclSocketInit).
constexpr std::string_view kNoFamily = "is neither AF_INET(";

const model::Log* failure(const model::JobModel& job) {
  const auto found = std::find_if(job.logs.begin(), job.logs.end(), [](const model::Log& log) {
    return base::contains(log.text, kNoFamily);
  });
  return found == job.logs.end() ? nullptr : &*found;
}

/// The rank's last message, if it may have failed.
const model::CollectiveCall* last_open_message(const graph::Examination& examination,
                                               model::Rank rank) {
  const graph::Calls& all = examination.history.point_to_point(rank);
  // Each group has numbers of its own.
  const auto last = std::max_element(all.begin(), all.end(), [](const auto* a, const auto* b) {
    return a->time.value_or(0) < b->time.value_or(0);
  });
  const bool open = last != all.end() && (*last)->state != model::CallState::kCompleted;
  return open && (*last)->peer ? *last : nullptr;
}

struct Pair {
  const model::CollectiveCall* one = nullptr;
  const model::CollectiveCall* other = nullptr;
};

std::vector<Pair> pairs(const graph::Examination& examination) {
  std::vector<Pair> out;
  for (const graph::Standing& standing : examination.standings) {
    const auto* one = last_open_message(examination, standing.rank);
    const auto* other = one == nullptr || *one->peer <= standing.rank
                            ? nullptr
                            : last_open_message(examination, *one->peer);
    if (other != nullptr && *other->peer == standing.rank && other->group == one->group &&
        other->operation == one->operation) {
      out.push_back({.one = one, .other = other});
    }
  }
  return out;
}

std::string sentence(const Pair& pair) {
  const bool sends = pair.one->operation == "send" || pair.one->operation == "isend";
  return fmt::format("{} are both in {}, and neither {}",
                     said(model::RankSet{pair.one->rank, pair.other->rank}), pair.one->operation,
                     sends ? "receives" : "sends");
}

}  // namespace

Findings refused_pairs(const graph::Examination& examination, std::string_view kind) {
  const model::Log* const log = failure(examination.job);
  const auto found = log == nullptr ? std::vector<Pair>{} : pairs(examination);
  if (found.empty()) {
    return {};
  }
  Finding finding;
  finding.kind = kind;
  finding.confidence = Confidence::kCertain;
  const std::size_t at = log->text.find(kNoFamily);
  const std::size_t begin = log->text.rfind('\n', at) + 1;
  finding.evidence.push_back({.rank = log->rank,
                              .text = "log: " + base::printable(std::string_view(log->text).substr(
                                                    begin, log->text.find('\n', at) - begin))});
  std::vector<std::string> sentences;
  for (const Pair& pair : found) {
    sentences.push_back(sentence(pair));
    for (const model::CollectiveCall* call : {pair.one, pair.other}) {
      finding.culprits.insert(call->rank);
      const std::string words =
          fmt::format("rank {} called {} {} rank {} (recorded call)", call->rank, call->operation,
                      call->operation.ends_with("send") ? "to" : "from", *call->peer);
      finding.evidence.push_back(
          {.rank = call->rank,
           .text = words,
           .shown =
               Shown{.file = call->call_site.file, .line = call->call_site.line, .words = words}});
      if (call->call_site.known()) {
        finding.locations.push_back(location(call->call_site, {call->rank}, words));
      }
    }
  }
  finding.summary = fmt::format("{}; NCCL could not connect them", fmt::join(sentences, "; "));
  finding.fix =
      "Send on one side of each pair while the other receives (order by rank), or post both with "
      "batch_isend_irecv().";
  return {finding};
}

}  // namespace ddpdoctor::detectors
