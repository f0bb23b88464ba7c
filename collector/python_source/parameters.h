// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collector/program/questions/passing.h"

namespace ddpdoctor::python_source {

using Parameter = program::PassedParameter;
using program::Argument;
using program::arguments_for;
using program::parameters_behind;

}  // namespace ddpdoctor::python_source
