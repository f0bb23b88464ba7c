# SPDX-License-Identifier: Apache-2.0
# One interface target carries the warnings; presets decide about -Werror.
add_library(ddpdoctor_warnings INTERFACE)
target_compile_options(ddpdoctor_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast
  -Wimplicit-fallthrough)
# g++ 12 reports overlaps of 2^63 bytes in its own std::string (GCC bug 105651), and accesses outside a string's own buffer if the string
# has moved to the heap (105329), with precompiled headers at other places than without.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(ddpdoctor_warnings INTERFACE -Wno-restrict -Wno-array-bounds)
endif()
