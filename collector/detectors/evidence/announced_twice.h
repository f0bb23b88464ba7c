// SPDX-License-Identifier: Apache-2.0
// Ranks that announce themselves in a log before the rendezvous: "GLOBAL_RANK: 0, MEMBER: 1/8".
#pragma once

#include <optional>
#include <string>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// Some ranks announced themselves twice, and others of the world never.
struct AnnouncedTwice {
  model::RankSet twice;
  model::RankSet never;
  std::string line;  // one of the announcements
};

/// Nothing if the second announcement may be of a second attempt: a line between the two shows
/// an error. Nothing if every rank of the world announced itself.
std::optional<AnnouncedTwice> announced_twice(const model::JobModel& job);

/// Ranks of the world that never announced themselves in a log that ends with the announcements of
/// others, rank 0 among them.
struct AnnouncedTooFew {
  model::RankSet there;
  model::RankSet never;
  std::string line;
};
std::optional<AnnouncedTooFew> announced_too_few(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
