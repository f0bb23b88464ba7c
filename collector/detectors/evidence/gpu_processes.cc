// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/gpu_processes.h"

#include <charconv>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/wording.h"

namespace ddpdoctor::detectors {
namespace {

constexpr int kNoNumber = -1;

int number_at(std::string_view text, std::size_t at) {
  int number = kNoNumber;
  if (at < text.size()) {
    std::from_chars(text.data() + at, text.data() + text.size(), number);
  }
  return number;
}

/// The number behind `words`; kNoNumber if there is none.
int number_of_words(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  return at == text.npos ? kNoNumber : number_at(text, at + words.size());
}

/// "node7:101560:130074 [12] NCCL INFO comm 0x6599 rank 12 nranks 16 …": pid → rank.
std::map<int, model::Rank> ranks_of_nccl(const model::JobModel& job) {
  std::map<int, model::Rank> out;
  for (const model::Log& log : job.logs) {
    for (const std::string_view line : base::split(log.text, '\n')) {
      const std::size_t nccl = line.find(" NCCL INFO ");
      const std::size_t ranks = nccl == line.npos ? nccl : line.find(" nranks ", nccl);
      if (ranks == line.npos) {
        continue;
      }
      const std::string_view head = line.substr(0, nccl);
      const std::size_t thread = head.rfind(':');
      const std::size_t process = thread == head.npos ? thread : head.rfind(':', thread - 1);
      const int pid = process == head.npos ? kNoNumber : number_at(head, process + 1);
      const int rank = number_of_words(line.substr(nccl), " rank ");
      if (pid > 0 && rank >= 0) {
        out[pid] = rank;
      }
    }
  }
  return out;
}

/// "Process 101553 has 1.19 GiB memory in use. Process 101552 has …".
model::RankSet listed_ranks(std::string_view line, const std::map<int, model::Rank>& ranks) {
  constexpr std::string_view kProcess = "Process ";
  model::RankSet out;
  for (std::size_t at = line.find(kProcess); at != line.npos; at = line.find(kProcess, at + 1)) {
    const auto known = ranks.find(number_at(line, at + kProcess.size()));
    if (known != ranks.end()) {
      out.insert(known->second);
    }
  }
  return out;
}

}  // namespace

std::optional<Finding> ranks_on_full_gpu(const graph::Examination& examination,
                                         std::string_view kind, std::string_view fix) {
  std::map<int, model::Rank> ranks;
  for (const LogStream& stream : log_streams(examination.job)) {
    for (std::size_t i = 0; i < stream.size(); ++i) {
      const std::string_view line = stream[i].text;
      if (line.find("CUDA out of memory") == line.npos ||
          line.find(" memory in use. ") == line.npos) {
        continue;
      }
      ranks = ranks.empty() ? ranks_of_nccl(examination.job) : ranks;
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
      const int gpu = number_of_words(line, ". GPU ");
      const std::string whose =
          gpu == kNoNumber ? std::string("a GPU") : fmt::format("GPU {}", gpu);
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
