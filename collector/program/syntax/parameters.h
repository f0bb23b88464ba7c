// SPDX-License-Identifier: Apache-2.0
// The parameters of a def or a lambda.
#pragma once

#include <vector>

#include "collector/program/syntax/source_index.h"

namespace ddpdoctor::program {

std::vector<Parameter> parameters_of(Node list);

}  // namespace ddpdoctor::program
