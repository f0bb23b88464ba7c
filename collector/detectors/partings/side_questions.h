// SPDX-License-Identifier: Apache-2.0
// What one side of a parting is at: the questions that reading a cause begins with.
#pragma once

#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

/// Slow is not hung: the missing ranks still work. Two different operations never meet, however
/// busy the ranks are.
bool is_slow(const graph::Examination& examination, const Parting& parting);

/// Dead, absent or unseen, and without a call.
bool is_gone(const Side& side);

/// The stack of the odd side is not known, but its recorder was read and lacks the call: it is
/// behind for certain.
bool is_recorded_behind(const graph::Examination& examination, const Parting& parting);

/// It waits at a pipe, a socket or a file for a process around the ranks, and one of those only
/// pauses: the detectors of such waits tell it, as possible.
bool awaits_an_outsider(const graph::Examination& examination, const Side& side);

/// Blocked in something that has nothing to do with the calls of the source: others find its cause.
bool is_blocked_elsewhere(const Side& side);

/// In the reducer's all_reduce, by its activity or by the line of the call.
bool in_backward(const graph::Examination& examination, const Side& side);

/// DDP broadcasts buffers without a call in the source. `shifted`: the side was put one call on.
bool in_ddp_forward(const graph::Examination& examination, const Side& side, bool shifted);

/// As the reducers say, the odd side began as many backwards as the others, and its newest lacks
/// gradients: no step is missing there.
bool lacks_gradients(const model::JobModel& job, const Parting& parting);

/// As a reducer says, the odd side is between a forward and its backward, and it does not stand
/// behind the line at which the others wait: nothing went unused yet.
bool has_backward_to_come(const model::JobModel& job, const Parting& parting);

/// The odd side is in a bucket of backward and the rest behind it: in a tie, or as the records show
/// at the first call that differs. Who is behind it left it out, however many they are.
bool rest_is_past_backward(const graph::Examination& examination, const Parting& parting);

/// Its reducers are recorded, and each backward of theirs reduced every bucket.
bool has_all_gradients(const model::JobModel& job, const Side& side);

/// As the records show: both sides gather parameters, of different sizes, at lines that say nothing
/// of a gather. A sharded unit ran on one side only.
bool gather_different_units(const model::JobModel& job, const Parting& parting);

/// The odd side stands before the rest in the same function.
bool is_before(const Parting& parting);

/// Somewhere on its path no gradients are computed: an evaluation.
bool is_without_gradients(const model::JobModel& job, const Side& side);

/// Two ranks stand in the very same call of this group and name different roots: whoever is further
/// on was let through.
bool roots_contradict(const graph::Examination& examination, const std::string& group);

/// In each of the two groups the odd ranks wait in the other one.
bool hold_each_other(const Parting& a, const Parting& b);

/// One of these is such a group.
bool is_mutual(const Parting& a, const std::vector<Parting>& all);

/// The waiting goes round over more groups than two: meshes, where rows wait for columns.
bool is_in_circle(const graph::Examination& examination, const Parting& parting);

/// The ranks of a group: all where nothing is known of it.
model::RankSet members(const graph::Examination& examination, const graph::GroupView& view);

/// Nobody said who is in the group, and of all ranks one only was seen in it: whom it waits for is
/// not known.
bool has_one_known_member(const graph::Examination& examination, const std::string& group);

}  // namespace ddpdoctor::detectors
