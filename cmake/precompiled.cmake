# SPDX-License-Identifier: Apache-2.0
# Parses once what nearly every file includes: <fmt/format.h> and the containers took half of a unit's compile time. A target names the set
# of headers that it shares: ddpdoctor_precompile(TARGET common). Every file still includes what it uses; a build with -DDDPDOCTOR_PCH=OFF
# has no precompiled headers and shows a missing include.
option(DDPDOCTOR_PCH "parse the standard library's and fmt's headers once per build" ON)

# ccache accepts a unit with precompiled headers only with this setting, which promises that their macros are the same.
if(DDPDOCTOR_CCACHE AND DDPDOCTOR_PCH)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    ${DDPDOCTOR_CCACHE})
endif()

# The set NAME: a target that is compiled once, from these headers and with the options that these libraries require.
function(ddpdoctor_precompiled_set name)
  cmake_parse_arguments(arg "" "" "HEADERS;USES" ${ARGN})
  if(NOT DDPDOCTOR_PCH)
    return()
  endif()
  set(empty ${PROJECT_BINARY_DIR}/precompiled/${name}.cc)
  file(CONFIGURE OUTPUT ${empty} CONTENT "// Written by cmake/precompiled.cmake: a target wants a file.\n")
  add_library(ddpdoctor_pch_${name} OBJECT ${empty})
  target_link_libraries(ddpdoctor_pch_${name} PRIVATE ddpdoctor_warnings ${arg_USES})
  target_precompile_headers(ddpdoctor_pch_${name} PRIVATE ${arg_HEADERS})
endfunction()

function(ddpdoctor_precompile target name)
  if(DDPDOCTOR_PCH)
    target_precompile_headers(${target} REUSE_FROM ddpdoctor_pch_${name})
  endif()
endfunction()

set(ddpdoctor_common_headers
  <algorithm> <array> <charconv> <chrono> <cstddef> <cstdint> <cstring> <filesystem> <functional> <map> <memory> <optional> <set> <span> <string>
  <string_view> <utility> <vector> <fmt/format.h> <tl/expected.hpp>)
ddpdoctor_precompiled_set(common HEADERS ${ddpdoctor_common_headers} USES fmt::fmt)
