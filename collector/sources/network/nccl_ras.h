// SPDX-License-Identifier: Apache-2.0
// Queries the RAS subsystem of NCCL (2.24 and later), which needs no preloading: any process of the
// host answers for the whole job. The format of its text is not stable, so only JSON (2.28.7 and
// later) is requested.
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

/// "host:port" as in NCCL_RAS_ADDR; missing parts keep their defaults.
RasQuestion ras_question(const std::string& address);

/// One answer, a JSON text of at most 16 MiB. Fails if there is no listener, if NCCL is too old, or
/// at the deadline.
base::Result<std::string> ask_ras(const RasQuestion& question);

}  // namespace ddpdoctor::sources
