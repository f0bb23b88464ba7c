// SPDX-License-Identifier: Apache-2.0
// Conditions that read what a caller has passed: `if fence:` where somebody called
// section(fence=rank == 0), perhaps in another file.
#pragma once

#include "collector/detectors/call_sites/source_path.h"

namespace ddpdoctor::detectors {

/// dependence_of, followed through parameters to the calls that pass them: those on `path`, else
/// all that the known sources have.
python_source::Dependence dependence_through_calls(const model::JobModel& job, const Path& path,
                                                   const python_source::Lines& lines,
                                                   const python_source::Block& block);

}  // namespace ddpdoctor::detectors
