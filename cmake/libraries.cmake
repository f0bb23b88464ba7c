# SPDX-License-Identifier: Apache-2.0
# The libraries of the program. With DDPDOCTOR_STATIC all of them, libc too, come from the static archives of Debian's -dev packages: the
# program then needs only a Linux kernel, and runs in every image. The agent remains a library of its own (agent/old_libc.h).
option(DDPDOCTOR_STATIC "link the program statically, so that it runs in every image" OFF)

find_package(PkgConfig REQUIRED)
if(NOT DDPDOCTOR_STATIC)
  find_package(fmt REQUIRED)
  pkg_check_modules(libdw REQUIRED IMPORTED_TARGET libdw)
  pkg_check_modules(libelf REQUIRED IMPORTED_TARGET libelf)
  pkg_check_modules(libzstd REQUIRED IMPORTED_TARGET libzstd)
  return()
endif()

# The targets of the other branch, in the order that a static linker needs: libdw uses libelf, both use the compressors.
set(static_suffixes ${CMAKE_FIND_LIBRARY_SUFFIXES})
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
foreach(library dw elf z bz2 lzma zstd)
  find_library(DDPDOCTOR_STATIC_${library} NAMES ${library} REQUIRED)
endforeach()
set(CMAKE_FIND_LIBRARY_SUFFIXES ${static_suffixes})
set(compressors ${DDPDOCTOR_STATIC_z} ${DDPDOCTOR_STATIC_bz2} ${DDPDOCTOR_STATIC_lzma})
foreach(name libdw libelf libzstd)
  add_library(PkgConfig::${name} INTERFACE IMPORTED)
endforeach()
target_link_libraries(PkgConfig::libelf INTERFACE ${DDPDOCTOR_STATIC_elf} ${compressors})
target_link_libraries(PkgConfig::libdw INTERFACE ${DDPDOCTOR_STATIC_dw} PkgConfig::libelf)
target_link_libraries(PkgConfig::libzstd INTERFACE ${DDPDOCTOR_STATIC_zstd})

# Debian has no static fmt, but all of its source is in headers: one unit compiles what is not inline.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/static_fmt.cc CONTENT [=[
// Written by cmake/libraries.cmake.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
template FMT_API auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto thousands_sep_impl<wchar_t>(locale_ref) -> thousands_sep_result<wchar_t>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
template FMT_API auto decimal_point_impl(locale_ref) -> wchar_t;
template FMT_API auto dragonbox::to_decimal(float x) noexcept -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal(double x) noexcept -> dragonbox::decimal_fp<double>;
}  // namespace detail
FMT_END_NAMESPACE
]=] @ONLY)
add_library(ddpdoctor_fmt STATIC ${PROJECT_BINARY_DIR}/static_fmt.cc)
target_compile_definitions(ddpdoctor_fmt INTERFACE FMT_SHARED)  # as with Debian's fmt: both builds share one cache of objects
add_library(fmt::fmt ALIAS ddpdoctor_fmt)
