// SPDX-License-Identifier: Apache-2.0
// Ranks that poll a store between sleeps: `while store.add("gate", 0) != n`.
#pragma once

#include <optional>
#include <string>

#include "collector/graph/standing.h"

namespace ddpdoctor::detectors {

struct PolledStore {
  model::CallSite loop;
  std::string header;  // "while here != n"
  model::CallSite asks;
};

/// Nothing if the rank does not sleep in a `while` that contains such a call.
std::optional<PolledStore> polled_store(const model::JobModel& job,
                                        const graph::Standing& standing);

}  // namespace ddpdoctor::detectors
