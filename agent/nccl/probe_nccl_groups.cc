// SPDX-License-Identifier: Apache-2.0
// Groups of NCCL: calls inside reach the GPU at the end of the group. Collectives and messages are
// in the table in nccl_probes.h.
#include "agent/nccl/nccl_calls.h"
#include "agent/nccl/nccl_probes.h"

namespace ddpdoctor::agent::nccl {

Result group_start(L library) {
  const Result result = real<kncclGroupStart>(library);
  if (result == kSuccess && !is_nested()) {
    group_started();
  }
  return result;
}

/// It may itself wait for other ranks: at the first use of a connection, or for an init inside the
/// group.
Result group_end(L library) {
  const bool ours = !is_nested();
  if (ours) {
    group_ends();
  }
  const Result result = real<kncclGroupEnd>(library);
  if (ours) {
    group_ended(result);
  }
  return result;
}

/// Ends the group without running it.
Result group_simulate_end(L library, Out information) {
  const Result result = real<kncclGroupSimulateEnd>(library, information);
  if (!is_nested()) {
    group_ended(kInternalError);
  }
  return result;
}

}  // namespace ddpdoctor::agent::nccl
