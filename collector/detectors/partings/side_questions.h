// SPDX-License-Identifier: Apache-2.0
// The state of one side of a divergence: the first checks of an analysis.
#pragma once

#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

/// Slow is not hung: the missing ranks still work. Two different operations never match, however
/// busy the ranks are.
bool is_slow(const graph::Examination& examination, const Parting& parting);

/// Dead, absent or unobserved, and without a call.
bool is_gone(const Side& side);

/// The stack of the odd side is unknown, but its recorder was read and lacks the call: it is
/// certainly behind.
bool is_recorded_behind(const graph::Examination& examination, const Parting& parting);

/// It waits on a pipe, a socket or a file for a process around the ranks, and one of those only
/// pauses: the detectors of such waits report it as possible.
bool awaits_an_outsider(const graph::Examination& examination, const Side& side);

/// Blocked in something unrelated to the calls of the source: other detectors find its cause.
bool is_blocked_elsewhere(const Side& side);

/// The line of its call runs a backward.
bool is_at_backward(const model::JobModel& job, const Side& side);

/// In the reducer's all_reduce, according to its activity or the line of the call.
bool in_backward(const graph::Examination& examination, const Side& side);

/// Its host is in the forward of DDP, and the recorded call, if there is one, may be made there: a
/// host that runs ahead of its GPU is behind that call.
bool stands_in_ddp_forward(const Side& side);

/// DDP broadcasts buffers without a call in the source. `shifted`: the side was moved one call
/// ahead.
bool in_ddp_forward(const graph::Examination& examination, const Side& side, bool shifted);

/// According to the reducers, the odd side began as many backward passes as the others, and its
/// newest lacks gradients: no step is missing there.
bool lacks_gradients(const model::JobModel& job, const Parting& parting);

/// According to a reducer, the odd side is between a forward and its backward, and it is not after
/// the line at which the others wait: no parameter is unused yet.
bool has_backward_to_come(const model::JobModel& job, const Parting& parting);

/// The odd side is in a bucket of backward and the rest after it: if the sides are of equal size,
/// or if the records show it at the first differing call. The side after it skipped it, whatever
/// its size.
bool rest_is_past_backward(const graph::Examination& examination, const Parting& parting);

/// Its reducers are recorded, and each of their backward passes reduced every bucket.
bool has_all_gradients(const model::JobModel& job, const Side& side);

/// According to the records, the side gathers parameters at a line without an explicit gather: a
/// sharded module makes the call.
bool gathers_unasked(const model::JobModel& job, const Side& side);

/// According to the records, both sides gather parameters of different sizes at lines without an
/// explicit gather: a sharded unit ran on one side only. Or, according to stacks, one line of the
/// user's led them to different modules of a sharded model.
bool gather_different_units(const model::JobModel& job, const Parting& parting);

/// The odd side is before the rest in the same function.
bool is_before(const Parting& parting);

/// Gradients are disabled somewhere on its path: an evaluation.
bool is_without_gradients(const model::JobModel& job, const Side& side);

/// Two ranks are in the same call of this group and pass different roots: a rank that is further on
/// was not blocked.
bool roots_contradict(const graph::Examination& examination, const std::string& group);

/// In each of the two groups the odd ranks wait in the other one.
bool hold_each_other(const Parting& a, const Parting& b);

/// One of these is such a group.
bool is_mutual(const Parting& a, const std::vector<Parting>& all);

/// The waits form a cycle over more than two groups: meshes in which rows wait for columns.
bool is_in_circle(const graph::Examination& examination, const Parting& parting);

}  // namespace ddpdoctor::detectors
