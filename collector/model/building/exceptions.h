// SPDX-License-Identifier: Apache-2.0
// Python exceptions that the interpreters of a job have in hand, as facts of kind "exception".
#pragma once

#include "collector/model/building/build_model.h"

namespace ddpdoctor::model {

/// What main threads handle at the moment (`printed` false), and what programs failed with
/// (`printed` true): `exception` ("ValueError: no such shard"); file, line and function of the
/// user's innermost place in its traceback; `handler_file` and `handler_function`, where it is
/// caught.
void add_exceptions(JobModel& job, const Look& look);

}  // namespace ddpdoctor::model
