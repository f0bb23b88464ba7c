// SPDX-License-Identifier: Apache-2.0
// The definitions in loaded objects, read from their own tables. Nothing is opened: dlopen, even of
// a loaded library, runs pending constructors of it and its dependencies. Called from a constructor
// (of a library that uses dlsym there), it would run them too early, and crash (libGLX before
// libGLdispatch, with torch 1.13). Nothing is resolved either: an indirect function (STT_GNU_IFUNC)
// counts as undefined. Takes the lock of dl_iterate_phdr.
#pragma once

#include <cstddef>

namespace ddpdoctor::agent {

/// An address in each loaded object whose file `wanted` accepts, in load order; returns their
/// number, at most `most`.
int loaded_objects(bool (*wanted)(const char* path), const void** inside, int most);

enum class Reach {
  kItself,
  kDependencies,  // and its dependencies, breadth first, like dlsym with its handle
};

/// Looks up `count` names in the loaded object that contains `inside`; null for names not defined
/// there, and for all names if no object contains the address.
void look_up(const void* inside, Reach reach, const char* const* names, void** found, int count);

/// One name.
void* look_up(const void* inside, Reach reach, const char* name);

}  // namespace ddpdoctor::agent
