// SPDX-License-Identifier: Apache-2.0
// The layout of objects that hold a program's values: functions, descriptors, containers. Unlike
// the interpreter's own structures, it is nearly the same in every version; functions of the
// version return the few differences. Offsets count from the object's start and assume the plain
// 16-byte header (free-threaded builds are refused earlier). Sources:
// Include/cpython/{object,funcobject,frameobject,setobject}.h, Include/descrobject.h,
// Objects/descrobject.c, Modules/_collectionsmodule.c of CPython 3.8 to 3.15.
#pragma once

#include <cstdint>

#include "collector/stacks/python/object_flags.h"

namespace ddpdoctor::stacks::value_layout {

// PyTypeObject, PyHeapTypeObject.
constexpr std::int64_t kTypeDict = 264;
constexpr std::int64_t kTypeMro = 344;
constexpr std::int64_t kQualnameBeforeSharedKeys = 8;  // ht_qualname precedes ht_cached_keys

/// PyFunctionObject: 3.10 moved the parts of a frame to the front.
struct Function {
  std::int64_t code;
  std::int64_t globals;
  std::int64_t defaults;
  std::int64_t closure;
  std::int64_t qualname;
  std::int64_t module;
};

constexpr Function function(std::int32_t version) {
  return version < kVersion310 ? Function{.code = 16,
                                          .globals = 24,
                                          .defaults = 32,
                                          .closure = 48,
                                          .qualname = 104,
                                          .module = 88}
                               : Function{.code = 48,
                                          .globals = 16,
                                          .defaults = 56,
                                          .closure = 72,
                                          .qualname = 40,
                                          .module = 104};
}

/// The namespaces of a frame.
struct Namespaces {
  std::int64_t globals;
  std::int64_t builtins;
  std::int64_t locals;  // a dict in module and class bodies; otherwise null
};

constexpr Namespaces namespaces(std::int32_t version) {
  if (version < kVersion311) {
    return {.globals = 48, .builtins = 40, .locals = 56};
  }
  if (version < kVersion312) {
    return {.globals = 8, .builtins = 16, .locals = 24};
  }
  return {.globals = 24, .builtins = 32, .locals = 40};
}

// First field of property, classmethod, staticmethod, _tuplegetter (an integer there), method.
constexpr std::int64_t kFirstField = 16;
constexpr std::int64_t kMethodSelf = 24;

// PyMemberDescrObject.d_member; PyMemberDef: name, type, offset.
constexpr std::int64_t kMemberDefinition = 40;
constexpr std::int64_t kMemberType = 8;
constexpr std::int64_t kMemberOffset = 16;
constexpr int kObjectMember = 6;     // T_OBJECT
constexpr int kObjectMemberEx = 16;  // T_OBJECT_EX

// PyCFunctionObject: PyMethodDef* (its name comes first), self, module.
constexpr std::int64_t kBuiltinDefinition = 16;
constexpr std::int64_t kBuiltinSelf = 24;
constexpr std::int64_t kBuiltinModule = 32;
// PyMethodDescrObject.d_method.
constexpr std::int64_t kDescriptorMethod = 40;

// PySetObject.
constexpr std::int64_t kSetUsed = 24;
constexpr std::int64_t kSetMask = 32;
constexpr std::int64_t kSetTable = 40;

// PyDictObject.ma_used.
constexpr std::int64_t kDictUsed = 16;

// rangeobject: start, stop, step, length.
constexpr std::int64_t kRangeLength = 40;

// rlockobject: the lock, its owner (an ident of threading), how often the owner took it. 3.14
// counts from 0, and the first bit of the lock says that it is held.
constexpr std::int64_t kRecursiveLock = 16;
constexpr std::int64_t kRecursiveOwner = 24;
constexpr std::int64_t kRecursiveCount = 32;

// dequeobject: ob_size, leftblock, rightblock, leftindex; a block: leftlink, 64 items, rightlink.
constexpr std::int64_t kDequeLeftBlock = 24;
constexpr std::int64_t kDequeLeftIndex = 40;
constexpr std::int64_t kBlockItems = 8;
constexpr std::int64_t kBlockNext = 8 + (64 * 8);
constexpr std::int64_t kBlockLength = 64;

}  // namespace ddpdoctor::stacks::value_layout
