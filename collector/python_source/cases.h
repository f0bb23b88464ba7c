// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collector/program/questions/blocks.h"

namespace ddpdoctor::python_source {

using program::Case;
using program::cases_of;

}  // namespace ddpdoctor::python_source
