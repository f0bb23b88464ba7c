// SPDX-License-Identifier: Apache-2.0
// The address of the rendezvous to which processes could not connect, by logs, and whether all
// nodes of the job tried: then no process serves it.
#pragma once

#include <string>

#include "collector/detectors/evidence/known_exceptions.h"

namespace ddpdoctor::detectors {

struct StoreAddress {
  std::string text;       // "10.0.0.1:29400"; empty if no line, or several, name it
  bool brackets = false;  // the host was passed in brackets, as in a URL
  int nodes = 0;          // all of them failed to connect; 0 if some may have succeeded
};

StoreAddress unreachable_store(const model::JobModel& job);

/// Adds the address to "… cannot reach the rendezvous", or says that no process serves it.
void tell_store(const StoreAddress& store, ToldFinding& told);

}  // namespace ddpdoctor::detectors
