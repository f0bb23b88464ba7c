// SPDX-License-Identifier: Apache-2.0
// The layout of CPython's structures: one row of offsets per version, for x86-64.
// tests/support/generate_python_offsets.c generates the rows from the headers of each version;
// since 3.13 the interpreter contains its own offsets (_Py_DebugOffsets), which have priority.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ddpdoctor::stacks {

/// Byte offsets in the interpreter's structures; -1 = this version has no such field.
struct PythonLayout {
  std::int32_t version = 0;  // 0x030b = 3.11

  std::int64_t runtime_interpreters = -1;  // _PyRuntimeState.interpreters.head
  std::int64_t runtime_gil = -1;           // ≤3.11: _PyRuntimeState.ceval.gil

  std::int64_t interpreter_next = -1;
  std::int64_t interpreter_threads = -1;
  std::int64_t interpreter_id = -1;
  std::int64_t interpreter_modules = -1;
  std::int64_t interpreter_gil = -1;  // 3.12+: pointer to the GIL
  std::int64_t gil_holder = -1;       // in _gil_runtime_state
  std::int64_t gil_locked = -1;

  std::int64_t thread_next = -1;
  std::int64_t thread_ident = -1;  // thread_id: the value of threading.get_ident() (pthread_self)
  std::int64_t thread_native_id = -1;  // 3.11+
  std::int64_t thread_frame = -1;      // ≤3.10 and 3.13+
  std::int64_t thread_cframe =
      -1;  // 3.10 to 3.12: the innermost CFrame, a local variable of the evaluation loop
  std::int64_t cframe_frame = -1;  // 3.11, 3.12
  std::int64_t cframe_previous = -1;

  std::int64_t frame_code = -1;
  std::int64_t frame_instruction =
      -1;  // f_lasti (int) ≤3.10, prev_instr 3.11–3.12, instr_ptr 3.13+
  std::int64_t frame_previous = -1;
  std::int64_t frame_locals = -1;   // first slot of f_localsplus / localsplus
  std::int64_t frame_owner = -1;    // 3.12+
  std::int64_t frame_entry = -1;    // 3.11
  std::int32_t owner_c_stack = -1;  // lowest owner value that means "entry shim"

  std::int64_t code_filename = -1;
  std::int64_t code_name = -1;
  std::int64_t code_qualname = -1;  // 3.11+
  std::int64_t code_first_line = -1;
  std::int64_t code_line_table = -1;
  std::int64_t code_bytes = -1;            // 3.11+: co_code_adaptive
  std::int64_t code_first_traceable = -1;  // 3.11+
  std::int64_t code_local_names = -1;      // co_localsplusnames, co_varnames before 3.11
  std::int64_t code_local_kinds = -1;      // 3.11+: co_localspluskinds
  std::int64_t code_local_count = -1;      // ≤3.10: co_nlocals
  std::int64_t code_cell_names = -1;       // ≤3.10
  std::int64_t code_free_names = -1;       // ≤3.10

  std::int64_t object_header = -1;  // sizeof(PyObject)
  std::int64_t object_type = -1;
  std::int64_t object_size = -1;  // ob_size of variable-sized objects
  std::int64_t type_name = -1;
  std::int64_t type_flags = -1;
  std::int64_t type_basic_size = -1;
  std::int64_t type_item_size = -1;
  std::int64_t type_dict_offset = -1;
  std::int64_t type_shared_keys = -1;  // PyHeapTypeObject.ht_cached_keys
  std::int64_t string_length = -1;
  std::int64_t string_hash = -1;
  std::int64_t string_state = -1;
  std::int64_t string_ascii = -1;    // sizeof(PyASCIIObject): where compact ASCII text starts
  std::int64_t string_compact = -1;  // sizeof(PyCompactUnicodeObject)
  std::int64_t bytes_text = -1;
  std::int64_t int_digits = -1;
  std::int64_t float_value = -1;
  std::int64_t tuple_items = -1;
  std::int64_t list_items = -1;
  std::int64_t dict_keys = -1;
  std::int64_t dict_values = -1;
  std::int64_t keys_size = -1;     // dk_size (word) ≤3.10, dk_log2_size (byte) from 3.11
  std::int64_t keys_count = -1;    // dk_nentries
  std::int64_t keys_index = -1;    // dk_indices
  std::int64_t values_first = -1;  // first pointer in _dictvalues
  std::int64_t cell_content = -1;
};

/// One row per version, oldest first.
std::span<const PythonLayout> python_layouts();

/// The row of a version (0x030b); null if there is none.
const PythonLayout* python_layout(std::int32_t version);

/// For 3.13+: the position of each offset in _Py_DebugOffsets (the first bytes of _PyRuntime); -1 =
/// not contained. Null before 3.13.
const PythonLayout* python_debug_positions(std::int32_t version);

}  // namespace ddpdoctor::stacks
