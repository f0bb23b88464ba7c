# SPDX-License-Identifier: Apache-2.0
# One interface target carries the warnings; -Werror is a preset's business.
add_library(ddpdoctor_warnings INTERFACE)
target_compile_options(ddpdoctor_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast
  -Wimplicit-fallthrough)
# g++ 12 warns of overlaps of 2^63 bytes in its own std::string (GCC bug 105651), and of bytes outside of a string's own buffer
# where the string has moved to the heap (105329), at other places with precompiled headers than without.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(ddpdoctor_warnings INTERFACE -Wno-restrict -Wno-array-bounds)
endif()
