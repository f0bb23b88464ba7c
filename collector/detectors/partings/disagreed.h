// SPDX-License-Identifier: Apache-2.0
// One call that all ranks made with different arguments: which rank differs, and the part of the
// finding that shape, type, reduce operation and root share.
#pragma once

#include <string>
#include <string_view>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// The largest side of a divergence and all the others. Both calls exist.
struct Disagreed {
  model::RankSet odd;
  model::RankSet named;  // the ranks of `odd` that made `odd_call`; others may differ from it, too
  model::RankSet rest;
  bool tie = false;
  const model::CollectiveCall* odd_call = nullptr;
  const model::CollectiveCall* rest_call = nullptr;
};

Disagreed disagreed_at(const graph::Examination& examination, const graph::Divergence& divergence);

/// Sets culprits (none if the sides are of equal size), waiting ranks, both call sites, and both
/// calls as evidence.
Finding finding_of(const graph::Examination& examination, const graph::Divergence& divergence,
                   const Disagreed& disagreed);

/// The ranks are in two different calls of the program, one of them out of step: their arguments
/// differ because the calls differ.
bool is_out_of_step(const graph::Examination& examination, const graph::Divergence& divergence);

/// No cause was found why ranks of this group are in different calls.
bool is_unexplained(const graph::Examination& examination, const std::string& group);

/// A call that this rank has not finished, or its newest, is one in which the ranks disagree: it
/// fails there, or because of it ("MPI_ERR_TRUNCATE", gloo's size check).
bool fails_by_disagreement(const graph::Examination& examination, model::Rank rank);

}  // namespace ddpdoctor::detectors
