// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/standing_camps.h"

#include <map>

#include <fmt/format.h>

#include "collector/detectors/paths/libraries.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

/// Empty unless all of them are in a gather of a sharded module.
std::vector<Camp> by_sharded_unit(const graph::Examination& examination,
                                  const model::RankSet& ranks) {
  std::map<model::Rank, std::string> units;
  for (const model::Rank rank : ranks) {
    const graph::Standing& standing = *examination.standing(rank);
    if (!in_sharded_module(standing)) {
      return {};
    }
    std::string& unit = units[rank];
    for (const model::Frame& frame : standing.thread->frames) {
      if (frame.language == model::Language::kPython && model::is_framework_file(frame.file)) {
        unit += fmt::format("{}:{} ", frame.file, frame.line);
      }
    }
  }
  return camps(units);
}

}  // namespace

std::string place_key(const graph::Standing& standing) {
  return fmt::format("{}|{}|{}:{}", static_cast<int>(standing.activity),
                     standing.call ? standing.call->operation : "", standing.user.file,
                     standing.user.line);
}

std::vector<Camp> camps_by_place(const graph::Examination& examination,
                                 const model::RankSet& ranks) {
  std::map<model::Rank, std::string> said;
  for (const model::Rank rank : ranks) {
    const graph::Standing& standing = *examination.standing(rank);
    if (standing.user.known() && standing.user.line != 0) {
      said[rank] = place_key(standing);
    }
  }
  std::vector<Camp> places = camps(said);
  return places.size() == 1 ? by_sharded_unit(examination, places.front().ranks) : places;
}

bool are_numbered_apart(const graph::Examination& examination, model::Rank one, model::Rank other) {
  const auto& a = examination.standing(one)->call->sequence;
  const auto& b = examination.standing(other)->call->sequence;
  return a && b && *a != *b;
}

}  // namespace ddpdoctor::detectors
