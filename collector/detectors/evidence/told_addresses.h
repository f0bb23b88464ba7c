// SPDX-License-Identifier: Apache-2.0
// The addresses of the rendezvous that processes print or that their commands name, in logs.
#pragma once

#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// The processes that were given one value.
struct AddressCamp {
  std::string value;                // "29501"
  model::RankSet ranks;             // empty if the log does not name ranks
  std::vector<std::string> others;  // "node 1", "node1.log"
  std::string line;                 // one of the lines that show it
};

/// A setting of which processes of one job show different values.
struct AddressDispute {
  std::string name;      // "MASTER_PORT", "--rdzv-endpoint"
  bool decides = false;  // the difference alone prevents the rendezvous
  std::vector<AddressCamp> camps;
};

/// A difference that alone prevents the rendezvous.
bool addresses_differ(const model::JobModel& job);

/// Empty unless a message says that the rendezvous was not complete. A process that shows several
/// values of one setting is left out: it was started again, or prints another's.
std::vector<AddressDispute> told_addresses(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
