// SPDX-License-Identifier: Apache-2.0
// Current Python exceptions in the interpreters of a job, as facts of kind "exception".
#pragma once

#include "collector/model/building/build_model.h"

namespace ddpdoctor::model {

/// Adds the exceptions that main threads are handling (`printed` false) and those that ended
/// programs (`printed` true): `exception` ("ValueError: no such shard"); file, line and function of
/// the innermost user frame in the traceback; `handler_file` and `handler_function` of the code
/// that catches it.
void add_exceptions(JobModel& job, const Look& look);

}  // namespace ddpdoctor::model
