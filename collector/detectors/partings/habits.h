// SPDX-License-Identifier: Apache-2.0
// What ranks did before they parted, for a parting that neither numbers nor the source decide: who
// goes on as all did so far, and who does what nobody did before.
#pragma once

#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

/// Which side of a parting makes a call from where no rank called before.
enum class Newcomer { kNobody, kOdd, kRest };

/// Nobody where both do or neither does, where the other side's call was not made by all of both
/// before, or where the records do not go back to the first call.
Newcomer newcomer(const graph::Examination& examination, const Parting& parting);

/// A call as its group never made one before, though it made others.
bool is_first_of_its_kind(const graph::Examination& examination, const model::CollectiveCall& call);

/// A line that calls this operation here and only ever another one elsewhere.
bool breaks_its_habit(const graph::Examination& examination, const Side& side);

}  // namespace ddpdoctor::detectors
