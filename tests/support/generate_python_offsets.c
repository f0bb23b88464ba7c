// SPDX-License-Identifier: Apache-2.0
// Prints one row of collector/stacks/python/offsets.cc for the CPython whose headers it is compiled
// with; with an argument, the row of offsets inside _Py_DebugOffsets (3.13+). Run by
// generate_python_offsets.sh.
#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>
#include <stdio.h>
#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h>
#endif
#include "internal/pycore_pystate.h"
#if PY_VERSION_HEX >= 0x03090000
#include "internal/pycore_gil.h"
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#endif
#if PY_VERSION_HEX >= 0x030B0000
#include "internal/pycore_code.h"
#include "internal/pycore_dict.h"
#include "internal/pycore_frame.h"
#endif

#define AT(name, type, member) printf("     ." #name " = %ld,\n", (long)offsetof(type, member))
#define VALUE(name, number) printf("     ." #name " = %ld,\n", (long)(number))

static void interpreters(void) {
  AT(runtime_interpreters, _PyRuntimeState, interpreters.head);
#if PY_VERSION_HEX < 0x030C0000
  AT(runtime_gil, _PyRuntimeState, ceval.gil);
#endif
  AT(interpreter_next, PyInterpreterState, next);
#if PY_VERSION_HEX < 0x030B0000
  AT(interpreter_threads, PyInterpreterState, tstate_head);
#else
  AT(interpreter_threads, PyInterpreterState, threads.head);
#endif
  AT(interpreter_id, PyInterpreterState, id);
#if PY_VERSION_HEX < 0x030C0000
  AT(interpreter_modules, PyInterpreterState, modules);
#else
  AT(interpreter_modules, PyInterpreterState, imports.modules);
  AT(interpreter_gil, PyInterpreterState, ceval.gil);
#endif
  AT(gil_holder, struct _gil_runtime_state, last_holder);
  AT(gil_locked, struct _gil_runtime_state, locked);
}

static void threads(void) {
  AT(thread_next, PyThreadState, next);
  AT(thread_ident, PyThreadState, thread_id);
#if PY_VERSION_HEX >= 0x030B0000
  AT(thread_native_id, PyThreadState, native_thread_id);
#endif
#if PY_VERSION_HEX < 0x030B0000
  AT(thread_frame, PyThreadState, frame);
#if PY_VERSION_HEX >= 0x030A0000
  AT(thread_cframe, PyThreadState, cframe);
  AT(cframe_previous, CFrame, previous);
#endif
#elif PY_VERSION_HEX < 0x030D0000
  AT(thread_cframe, PyThreadState, cframe);
  AT(cframe_frame, _PyCFrame, current_frame);
  AT(cframe_previous, _PyCFrame, previous);
#else
  AT(thread_frame, PyThreadState, current_frame);
#endif
}

static void frames(void) {
#if PY_VERSION_HEX < 0x030B0000
  AT(frame_code, PyFrameObject, f_code);
  AT(frame_instruction, PyFrameObject, f_lasti);
  AT(frame_previous, PyFrameObject, f_back);
  AT(frame_locals, PyFrameObject, f_localsplus);
#else
#if PY_VERSION_HEX < 0x030D0000
  AT(frame_code, _PyInterpreterFrame, f_code);
  AT(frame_instruction, _PyInterpreterFrame, prev_instr);
#else
  AT(frame_code, _PyInterpreterFrame, f_executable);
  AT(frame_instruction, _PyInterpreterFrame, instr_ptr);
#endif
  AT(frame_previous, _PyInterpreterFrame, previous);
  AT(frame_locals, _PyInterpreterFrame, localsplus);
#if PY_VERSION_HEX < 0x030C0000
  AT(frame_entry, _PyInterpreterFrame, is_entry);
#else
  AT(frame_owner, _PyInterpreterFrame, owner);
#if PY_VERSION_HEX < 0x030E0000
  VALUE(owner_c_stack, FRAME_OWNED_BY_CSTACK);
#else
  VALUE(owner_c_stack, FRAME_OWNED_BY_INTERPRETER);
#endif
#endif
#endif
}

static void code(void) {
  AT(code_filename, PyCodeObject, co_filename);
  AT(code_name, PyCodeObject, co_name);
#if PY_VERSION_HEX >= 0x030B0000
  AT(code_qualname, PyCodeObject, co_qualname);
#endif
  AT(code_first_line, PyCodeObject, co_firstlineno);
#if PY_VERSION_HEX < 0x030A0000
  AT(code_line_table, PyCodeObject, co_lnotab);
#else
  AT(code_line_table, PyCodeObject, co_linetable);
#endif
#if PY_VERSION_HEX >= 0x030B0000
  AT(code_bytes, PyCodeObject, co_code_adaptive);
  AT(code_first_traceable, PyCodeObject, _co_firsttraceable);
  AT(code_local_names, PyCodeObject, co_localsplusnames);
  AT(code_local_kinds, PyCodeObject, co_localspluskinds);
#else
  AT(code_local_names, PyCodeObject, co_varnames);
  AT(code_local_count, PyCodeObject, co_nlocals);
  AT(code_cell_names, PyCodeObject, co_cellvars);
  AT(code_free_names, PyCodeObject, co_freevars);
#endif
}

static void objects(void) {
  VALUE(object_header, sizeof(PyObject));
  AT(object_type, PyObject, ob_type);
  AT(object_size, PyVarObject, ob_size);
  AT(type_name, PyTypeObject, tp_name);
  AT(type_flags, PyTypeObject, tp_flags);
  AT(type_basic_size, PyTypeObject, tp_basicsize);
  AT(type_item_size, PyTypeObject, tp_itemsize);
  AT(type_dict_offset, PyTypeObject, tp_dictoffset);
  AT(type_shared_keys, PyHeapTypeObject, ht_cached_keys);
  AT(string_length, PyASCIIObject, length);
  AT(string_hash, PyASCIIObject, hash);
  AT(string_state, PyASCIIObject, state);
  VALUE(string_ascii, sizeof(PyASCIIObject));
  VALUE(string_compact, sizeof(PyCompactUnicodeObject));
  AT(bytes_text, PyBytesObject, ob_sval);
#if PY_VERSION_HEX < 0x030C0000
  VALUE(int_digits, sizeof(PyVarObject));
#else
  AT(int_digits, PyLongObject, long_value.ob_digit);
#endif
  AT(float_value, PyFloatObject, ob_fval);
  AT(tuple_items, PyTupleObject, ob_item);
  AT(list_items, PyListObject, ob_item);
  AT(dict_keys, PyDictObject, ma_keys);
  AT(dict_values, PyDictObject, ma_values);
#if PY_VERSION_HEX >= 0x030B0000
  AT(keys_size, struct _dictkeysobject, dk_log2_size);
  AT(keys_count, struct _dictkeysobject, dk_nentries);
  AT(keys_index, struct _dictkeysobject, dk_indices);
  AT(values_first, struct _dictvalues, values);
#else
  // Objects/dict-common.h is not installed; refcnt, size, lookup, usable, nentries, indices.
  VALUE(keys_size, 8);
  VALUE(keys_count, 32);
  VALUE(keys_index, 40);
  VALUE(values_first, 0);
#endif
  AT(cell_content, PyCellObject, ob_ref);
}

#if PY_VERSION_HEX >= 0x030D0000
static void debug_positions(void) {
  AT(runtime_interpreters, _Py_DebugOffsets, runtime_state.interpreters_head);
  AT(interpreter_next, _Py_DebugOffsets, interpreter_state.next);
  AT(interpreter_threads, _Py_DebugOffsets, interpreter_state.threads_head);
  AT(interpreter_id, _Py_DebugOffsets, interpreter_state.id);
  AT(interpreter_modules, _Py_DebugOffsets, interpreter_state.imports_modules);
  AT(interpreter_gil, _Py_DebugOffsets, interpreter_state.ceval_gil);
  AT(thread_next, _Py_DebugOffsets, thread_state.next);
  AT(thread_ident, _Py_DebugOffsets, thread_state.thread_id);
  AT(thread_native_id, _Py_DebugOffsets, thread_state.native_thread_id);
  AT(thread_frame, _Py_DebugOffsets, thread_state.current_frame);
  AT(frame_code, _Py_DebugOffsets, interpreter_frame.executable);
  AT(frame_instruction, _Py_DebugOffsets, interpreter_frame.instr_ptr);
  AT(frame_previous, _Py_DebugOffsets, interpreter_frame.previous);
  AT(frame_locals, _Py_DebugOffsets, interpreter_frame.localsplus);
  AT(frame_owner, _Py_DebugOffsets, interpreter_frame.owner);
  AT(code_filename, _Py_DebugOffsets, code_object.filename);
  AT(code_name, _Py_DebugOffsets, code_object.name);
  AT(code_qualname, _Py_DebugOffsets, code_object.qualname);
  AT(code_first_line, _Py_DebugOffsets, code_object.firstlineno);
  AT(code_line_table, _Py_DebugOffsets, code_object.linetable);
  AT(code_bytes, _Py_DebugOffsets, code_object.co_code_adaptive);
  AT(code_local_names, _Py_DebugOffsets, code_object.localsplusnames);
  AT(code_local_kinds, _Py_DebugOffsets, code_object.localspluskinds);
  AT(object_header, _Py_DebugOffsets, pyobject.size);
  AT(object_type, _Py_DebugOffsets, pyobject.ob_type);
  AT(object_size, _Py_DebugOffsets, tuple_object.ob_size);
  AT(type_name, _Py_DebugOffsets, type_object.tp_name);
  AT(type_flags, _Py_DebugOffsets, type_object.tp_flags);
  AT(string_length, _Py_DebugOffsets, unicode_object.length);
  AT(string_state, _Py_DebugOffsets, unicode_object.state);
  AT(string_ascii, _Py_DebugOffsets, unicode_object.asciiobject_size);
  AT(bytes_text, _Py_DebugOffsets, bytes_object.ob_sval);
  AT(int_digits, _Py_DebugOffsets, long_object.ob_digit);
  AT(float_value, _Py_DebugOffsets, float_object.ob_fval);
  AT(tuple_items, _Py_DebugOffsets, tuple_object.ob_item);
  AT(list_items, _Py_DebugOffsets, list_object.ob_item);
  AT(dict_keys, _Py_DebugOffsets, dict_object.ma_keys);
  AT(dict_values, _Py_DebugOffsets, dict_object.ma_values);
}
#endif

int main(int argc, char** argv) {
  (void)argv;
  printf("    {.version = 0x%04x,\n", PY_VERSION_HEX >> 16);
  if (argc > 1) {
#if PY_VERSION_HEX >= 0x030D0000
    debug_positions();
#endif
  } else {
    interpreters();
    threads();
    frames();
    code();
    objects();
  }
  printf("    },\n");
  return 0;
}
