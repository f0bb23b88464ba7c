// SPDX-License-Identifier: Apache-2.0
// The steps of merging two captures.
#pragma once

#include <iterator>
#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

template <typename T>
void append(std::vector<T>& to, std::vector<T> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

/// Matches snapshots by their position from the end: clocks of different machines are not compared.
void merge_observations(std::vector<model::Observation>& whole,
                        std::vector<model::Observation> part);

void merge_groups(std::vector<model::ProcessGroup>& whole, std::vector<model::ProcessGroup> part);

void merge_hosts(std::vector<std::string>& whole, std::vector<std::string> part);

using Sources = decltype(model::JobModel::sources);
/// If both have a text of one line, that in `whole` stays.
void merge_sources(Sources& whole, Sources part);

/// Without the ranks, which are counted after all parts are merged.
void merge_coverage(model::Coverage& whole, model::Coverage part);

}  // namespace ddpdoctor::imports
