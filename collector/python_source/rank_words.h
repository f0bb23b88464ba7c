// SPDX-License-Identifier: Apache-2.0
// Names that speak of the rank, and names that are the same on every rank.
#pragma once

#include <string_view>

#include "collector/python_source/tokens.h"

namespace ddpdoctor::python_source {

/// "local_rank", "is_main_process", "is_global_zero", "isMaster", "get_rank"; not "low_rank",
/// "matrix_rank", "ranking".
bool is_rank_word(std::string_view word);

/// The text of a string literal that names a launcher's rank variable: "RANK", 'LOCAL_RANK',
/// "SLURM_PROCID".
bool is_rank_variable(std::string_view literal);

/// Alike on every rank of a job: "world_size", "is_initialized", "__name__".
bool is_uniform_word(std::string_view word);

/// A builtin that is as alike on all ranks as what it is given: "len", "any".
bool is_builtin_function(std::string_view word);

/// Keywords that stand between names in an expression.
bool is_keyword(std::string_view word);

/// Decorators that let one rank only into the function: "rank_zero_only", "on_main_process",
/// "master_only".
bool is_rank_decorator(std::string_view word);

}  // namespace ddpdoctor::python_source
