// SPDX-License-Identifier: Apache-2.0
// c10d_hooks.inc as a table.
#include "agent/hooks.h"

namespace ddpdoctor::agent {

#define CALL(id, symbol, operation, tensor, form, options, root, reduce) \
  {#symbol, Meaning::kCall, wire::Operation::operation, tensor, form, options, root, reduce},
#define AROUND(id, symbol, meaning) \
  {#symbol, Meaning::meaning, wire::Operation::kUnknown, -1, 0, -1, 0, 0},
#define ENTRY(id, symbol, meaning) \
  {#symbol, Meaning::meaning, wire::Operation::kUnknown, -1, 0, -1, 0, 0},

const Hook hooks[kHooks] = {
#include "agent/c10d/c10d_hooks.inc"
};

}  // namespace ddpdoctor::agent
