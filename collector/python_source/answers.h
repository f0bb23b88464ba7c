// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collector/program/questions/exceptions.h"

namespace ddpdoctor::python_source {

using program::clause_that_answers_none;
using program::none_tests_before;
using program::NoneTest;

}  // namespace ddpdoctor::python_source
