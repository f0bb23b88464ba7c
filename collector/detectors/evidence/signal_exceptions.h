// SPDX-License-Identifier: Apache-2.0
// Exceptions that a library raises because a signal arrived: Lightning's SIGTERMException.
#pragma once

#include <string>
#include <vector>

#include "collector/detectors/evidence/tracebacks.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// "SIGTERM", if the class of the exception (`text`, as Traceback::exception) is named for that
/// signal; empty if it is not.
std::string signal_of_exception(std::string_view text);

/// The exceptions with which ranks ended because of a signal while other ranks made further calls
/// and waited in them. Empty if no rank waits for them.
std::vector<Traceback> left_for_a_signal(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
