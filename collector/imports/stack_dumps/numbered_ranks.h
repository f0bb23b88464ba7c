// SPDX-License-Identifier: Apache-2.0
// Numbers for the ranks of a job whose dumps name none.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// If the ranks are workers of an MPI pool, the program that started them is not a rank.
void set_clients_apart(model::JobModel& job);

/// One process without a rank was dumped, and one rank is missing where the log shows that all
/// others wait: it is that rank.
void name_the_one_elsewhere(model::JobModel& job);

/// Numbers processes in the order in which a launcher starts its ranks: by a process table that
/// shows all of them, else by pid.
void number_ranks(model::JobModel& job);

}  // namespace ddpdoctor::imports
