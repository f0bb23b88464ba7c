// SPDX-License-Identifier: Apache-2.0
// Asks the RAS subsystem inside NCCL (2.24 on), which needs nothing preloaded: any process of the
// host answers for the whole job. Its text has no stable form, so only JSON (2.28.7 on) is asked
// for.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"

namespace ddpdoctor::sources {

struct RasQuestion {
  std::string host = "127.0.0.1";
  std::string port = "28028";
  std::chrono::milliseconds deadline{3000};  // for the whole conversation
};

/// "host:port" as in NCCL_RAS_ADDR; what is missing keeps its default.
RasQuestion ras_question(const std::string& address);

/// One answer, a JSON text of at most 16 MiB. Fails when nobody listens, when NCCL is too old, or
/// at the deadline.
base::Result<std::string> ask_ras(const RasQuestion& question);

}  // namespace ddpdoctor::sources
