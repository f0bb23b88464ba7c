// SPDX-License-Identifier: Apache-2.0
// c10d_hooks.inc as a table.
#include "agent/hooks.h"

namespace ddpdoctor::agent {

#define CALL(id, symbol, operation, tensor, form, options, root, reduce, async) \
  {#symbol, Meaning::kCall, wire::Operation::operation, tensor, form, options, root, reduce, async},
#define AROUND(id, symbol, meaning) \
  {#symbol, Meaning::meaning, wire::Operation::kUnknown, -1, 0, -1, -1, -1, -1},
#define ENTRY(id, symbol, meaning) \
  {#symbol, Meaning::meaning, wire::Operation::kUnknown, -1, 0, -1, -1, -1, -1},

const Hook hooks[kHooks] = {
#include "agent/c10d/c10d_hooks.inc"
};

}  // namespace ddpdoctor::agent
