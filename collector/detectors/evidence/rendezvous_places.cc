// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/rendezvous_places.h"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

/// "tcp://10.0.0.1:29500": the address passed to the call, without options; empty if there is none.
std::string place_given(const model::Thread& thread) {
  for (const model::Frame& frame : thread.frames) {
    if (frame.function != "init_process_group" ||
        !frame.file.ends_with("torch/distributed/distributed_c10d.py")) {
      continue;
    }
    std::string place(local_of(frame, "init_method"));
    std::erase_if(place, [](char letter) { return letter == '\'' || letter == '"'; });
    const bool told = place.starts_with("tcp://") || place.starts_with("file://");
    return told ? place.substr(0, place.find('?')) : std::string();
  }
  return {};
}

}  // namespace

Findings rendezvous_places(const graph::Examination& examination, Confidence still) {
  std::map<std::string, model::RankSet> places;
  for (const graph::Standing& standing : examination.standings) {
    const std::string place =
        standing.activity == graph::Activity::kRendezvous && standing.thread != nullptr
            ? place_given(*standing.thread)
            : std::string();
    if (place.empty()) {
      return {};
    }
    places[place].insert(standing.rank);
  }
  if (places.size() < 2) {
    return {};
  }
  // The address with the most ranks or, in case of a tie, that of rank 0, which serves the others.
  const auto right = std::max_element(places.begin(), places.end(), [](auto& one, auto& other) {
    return std::pair(one.second.size(), one.second.contains(0)) <
           std::pair(other.second.size(), other.second.contains(0));
  });
  std::vector<Suspect> suspects;
  std::string list;
  for (const auto& [place, ranks] : places) {
    list += fmt::format("{}{} at {}", list.empty() ? "" : ", ", said(ranks), place);
    for (const model::Rank rank : place == right->first ? model::RankSet{} : ranks) {
      const graph::Standing& standing = *examination.standing(rank);
      Suspect suspect = suspect_in(examination, *standing.process, standing.thread);
      suspect.rank = rank;
      suspect.confidence = still;
      suspect.note = fmt::format("rank {} waits at {}", rank, place);
      suspect.evidence =
          fmt::format("rank {} was given {}; {} {} given {}", rank, place, said(right->second),
                      right->second.size() == 1 ? "was" : "were", right->first);
      suspects.push_back(std::move(suspect));
    }
  }
  Finding finding = accuse(examination, "rendezvous-incomplete", suspects);
  finding.summary = "all ranks reached a rendezvous, but not the same one: " + list;
  finding.fix = "Give every rank the same init_method (one address and port, or one file).";
  return {std::move(finding)};
}

}  // namespace ddpdoctor::detectors
