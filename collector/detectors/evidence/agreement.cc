// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/agreement.h"

#include <algorithm>

#include "collector/detectors/evidence/communicator_setup.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

struct WaitingRanks {
  model::RankSet ranks;
};

struct WorkingRanks {
  model::RankSet ranks;
};

}  // namespace

std::vector<Camp> camps(const std::map<model::Rank, std::string>& said) {
  std::map<std::string, std::vector<model::Rank>> by_key;
  for (const auto& [rank, key] : said) {
    by_key[key].push_back(rank);
  }
  std::vector<Camp> result;
  result.reserve(by_key.size());
  for (auto& [key, ranks] : by_key) {
    result.push_back({.ranks = model::RankSet(std::move(ranks)), .key = key});
  }
  std::sort(result.begin(), result.end(), [](const Camp& a, const Camp& b) {
    return a.ranks.size() != b.ranks.size() ? a.ranks.size() > b.ranks.size()
                                            : a.ranks.front() < b.ranks.front();
  });
  return result;
}

bool has_majority(const std::vector<Camp>& camps) {
  return !camps.empty() && (camps.size() == 1 || camps[0].ranks.size() > camps[1].ranks.size());
}

model::RankSet minority(const std::vector<Camp>& camps) {
  model::RankSet result;
  if (has_majority(camps)) {
    for (std::size_t i = 1; i < camps.size(); ++i) {
      result = result.united(camps[i].ranks);
    }
  }
  return result;
}

model::RankSet ranks_where(const graph::Examination& examination,
                           const std::function<bool(const graph::Standing&)>& question) {
  std::vector<model::Rank> ranks;
  for (const graph::Standing& standing : examination.standings) {
    if (question(standing)) {
      ranks.push_back(standing.rank);
    }
  }
  return model::RankSet(std::move(ranks));
}

const model::RankSet& waiting_ranks(const graph::Examination& examination) {
  const auto find = [&examination] {
    const bool hangs = may_hang(examination);
    return WaitingRanks{ranks_where(examination, [hangs](const graph::Standing& standing) {
      const bool on_device = hangs && standing.activity == graph::Activity::kGpu &&
                             !standing.moved && !standing.on_cpu;
      return standing.waits_for_ranks() || on_device;
    })};
  };
  return examination.memo.once<WaitingRanks>(find).ranks;
}

const model::RankSet& working_ranks(const graph::Examination& examination) {
  const auto find = [&examination] {
    const model::RankSet at_work = ranks_where(examination, [](const graph::Standing& standing) {
      return standing.process != nullptr && !standing.process->exit &&
             !standing.waits_for_ranks() && (standing.on_cpu || standing.moved);
    });
    return WorkingRanks{at_work.united(complete_setups(examination))};
  };
  return examination.memo.once<WorkingRanks>(find).ranks;
}

model::RankSet unobserved_ranks(const graph::Examination& examination) {
  model::RankSet without_stack = ranks_where(examination, [](const graph::Standing& standing) {
    return standing.activity == graph::Activity::kUnobserved;
  });
  std::vector<model::Rank> recorded;
  for (const graph::GroupView& group : examination.groups) {
    for (const graph::RankProgress& progress : group.progress) {
      if (progress.enqueued > 0) {
        recorded.push_back(progress.rank);
      }
    }
  }
  return without_stack.minus(model::RankSet(std::move(recorded)));
}

model::RankSet absent_from(const graph::GroupView& group, std::int64_t sequence) {
  std::vector<model::Rank> ranks;
  for (const graph::RankProgress& progress : group.progress) {
    if (progress.enqueued < sequence) {
      ranks.push_back(progress.rank);
    }
  }
  return model::RankSet(std::move(ranks));
}

std::vector<Forsaken> forsaken_calls(const graph::Examination& examination) {
  std::vector<Forsaken> out;
  for (const graph::GroupView& view : examination.groups) {
    const graph::Divergence* parted = view.disagreement(graph::Disagreement::kMissing);
    if (!examination.job.ended || parted == nullptr) {
      continue;
    }
    Forsaken forsaken{.group = view.group.id, .sequence = parted->sequence};
    for (const graph::DivergentCall& side : parted->calls) {
      model::RankSet& ranks = side.call ? forsaken.ranks : forsaken.missing;
      ranks = ranks.united(side.ranks);
      forsaken.operation = side.call ? side.call->operation : forsaken.operation;
    }
    out.push_back(std::move(forsaken));
  }
  return out;
}

bool somebody_is_gone(const graph::Examination& examination) {
  return std::any_of(
      examination.standings.begin(), examination.standings.end(), [](const graph::Standing& one) {
        return one.activity == graph::Activity::kDead || one.activity == graph::Activity::kExited ||
               one.activity == graph::Activity::kAbsent;
      });
}

bool may_hang(const graph::Examination& examination) {
  return examination.job.progress != model::Progress::kMoving;
}

Confidence confidence_of(int facts) {
  if (facts >= 2) {
    return Confidence::kCertain;
  }
  return facts == 1 ? Confidence::kLikely : Confidence::kPossible;
}

Confidence at_most(Confidence confidence, Confidence limit) {
  return std::min(confidence, limit);
}

}  // namespace ddpdoctor::detectors
