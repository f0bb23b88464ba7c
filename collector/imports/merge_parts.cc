// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/merge_parts.h"

#include <algorithm>
#include <utility>

namespace ddpdoctor::imports {

void merge_observations(std::vector<model::Observation>& whole,
                        std::vector<model::Observation> part) {
  if (part.size() > whole.size()) {
    std::swap(whole, part);
  }
  const std::size_t older = whole.size() - part.size();
  for (std::size_t i = 0; i < part.size(); ++i) {
    append(whole[older + i].processes, std::move(part[i].processes));
  }
}

void merge_groups(std::vector<model::ProcessGroup>& whole, std::vector<model::ProcessGroup> part) {
  for (model::ProcessGroup& group : part) {
    const auto known =
        std::find_if(whole.begin(), whole.end(),
                     [&group](const model::ProcessGroup& other) { return other.id == group.id; });
    if (known == whole.end()) {
      whole.push_back(std::move(group));
    } else if (known->ranks.empty()) {
      known->ranks = std::move(group.ranks);
    }
  }
}

void merge_coverage(model::Coverage& whole, model::Coverage part) {
  append(whole.observed, std::move(part.observed));
  append(whole.unobserved, std::move(part.unobserved));
  append(whole.warnings, std::move(part.warnings));
  whole.events_lost += part.events_lost;
}

void merge_hosts(std::vector<std::string>& whole, std::vector<std::string> part) {
  for (std::string& host : part) {
    if (std::find(whole.begin(), whole.end(), host) == whole.end()) {
      whole.push_back(std::move(host));
    }
  }
}

void merge_sources(Sources& whole, Sources part) {
  for (auto& [file, lines] : part) {
    whole[file].merge(lines);
  }
}

}  // namespace ddpdoctor::imports
