// SPDX-License-Identifier: Apache-2.0
// Where logs and error files are all there is of a job that has failed: who only felt another
// rank's end, and who ended without a word.
#pragma once

#include <string>
#include <vector>

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// A rank whose last traceback tells of another rank's failure, and no other of its own.
struct FeltAnEnd {
  model::Rank rank = 0;
  bool lost_its_connection = false;  // else it gave up waiting, or was ended
  model::CallSite place = {};        // where it stood
  std::string exception = {};
};
/// In order of ranks; empty when any rank raised for reasons of its own.
std::vector<FeltAnEnd> felt_an_end(const model::JobModel& job);

/// The ranks of these that lost their connection.
model::RankSet lost_their_connection(const std::vector<FeltAnEnd>& all);

/// A rank that a launcher saw end with a status of its own, and that wrote no traceback.
struct Failed {
  model::Rank rank = 0;
  int status = 0;
  /// Its launcher calls it the first, or others fell after it; and no traceback may be its.
  bool sure = true;
};
/// Only the first one where its launcher tells which that was. Empty when any rank raised.
std::vector<Failed> failed_without_word(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
