# SPDX-License-Identifier: Apache-2.0
# The target `tree_sitter`: the parser library with its Python grammar, compiled from the two archives that tree_sitter.txt pins.
# pip downloads them once into the user's cache. Without a network, put the archives into a folder and pass
# -DDDPDOCTOR_TREE_SITTER_DIR=FOLDER (`pip download --no-binary :all: --no-deps --require-hashes -r cmake/tree_sitter.txt -d FOLDER`).
set(DDPDOCTOR_TREE_SITTER_DIR "" CACHE PATH "folder with the archives that cmake/tree_sitter.txt pins; empty: pip fetches them")

set(tree_sitter_pins ${CMAKE_CURRENT_LIST_DIR}/tree_sitter.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${tree_sitter_pins})
file(STRINGS ${tree_sitter_pins} lines REGEX "^[^#]")
foreach(line IN LISTS lines)
  string(REGEX MATCH "^([a-z-]+)==([0-9.]+) --hash=sha256:([0-9a-f]+)" pin "${line}")
  list(APPEND tree_sitter_names ${CMAKE_MATCH_1}-${CMAKE_MATCH_2})
  list(APPEND tree_sitter_hashes ${CMAKE_MATCH_3})
endforeach()

# The pip for the download: that of the test environment, the system's, else one in a temporary environment.
function(find_pip out)
  foreach(python IN ITEMS "$ENV{DDPDOCTOR_TEST_PYTHON}" python3)
    if(python)
      execute_process(COMMAND ${python} -m pip --version RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
      if(missing EQUAL 0)
        set(${out} ${python} PARENT_SCOPE)
        return()
      endif()
    endif()
  endforeach()
  execute_process(COMMAND python3 -m venv ${PROJECT_BINARY_DIR}/pip OUTPUT_QUIET)
  set(${out} ${PROJECT_BINARY_DIR}/pip/bin/python PARENT_SCOPE)
endfunction()

# pip writes into a temporary folder that is renamed when it is complete: several builds may download at once.
function(fetch_archives folder)
  message(STATUS "fetching ${tree_sitter_names} with pip into ${folder}")
  find_pip(python)
  string(RANDOM suffix)
  execute_process(
    COMMAND ${python} -m pip download -q --disable-pip-version-check --no-binary :all: --no-deps --require-hashes
      -r ${tree_sitter_pins} -d ${folder}.${suffix}
    RESULT_VARIABLE failed ERROR_VARIABLE words)
  if(NOT failed EQUAL 0)
    file(REMOVE_RECURSE ${folder}.${suffix})
    message(FATAL_ERROR "pip could not fetch ${tree_sitter_names}; without a network, fetch them elsewhere and set "
      "DDPDOCTOR_TREE_SITTER_DIR (see cmake/tree_sitter.cmake)\n${words}")
  endif()
  file(RENAME ${folder}.${suffix} ${folder} RESULT raced)
  if(raced)  # another build was faster
    file(REMOVE_RECURSE ${folder}.${suffix})
  endif()
endfunction()

set(tree_sitter_folder ${DDPDOCTOR_TREE_SITTER_DIR})
if(NOT tree_sitter_folder AND EXISTS ${PROJECT_SOURCE_DIR}/third_party)  # in the sdist
  set(tree_sitter_folder ${PROJECT_SOURCE_DIR}/third_party)
endif()
if(NOT tree_sitter_folder)
  set(cache $ENV{XDG_CACHE_HOME})
  if(NOT cache)
    set(cache $ENV{HOME}/.cache)
  endif()
  file(SHA256 ${tree_sitter_pins} pins_hash)
  string(SUBSTRING ${pins_hash} 0 12 pins_hash)
  set(tree_sitter_folder ${cache}/ddpdoctor/tree-sitter-${pins_hash})
  file(MAKE_DIRECTORY ${cache}/ddpdoctor)
  if(NOT EXISTS ${tree_sitter_folder})
    fetch_archives(${tree_sitter_folder})
  endif()
endif()

foreach(name hash IN ZIP_LISTS tree_sitter_names tree_sitter_hashes)
  string(REPLACE - ? pattern ${name})  # tree-sitter-python is tree_sitter_python in a file's name
  file(GLOB archive ${tree_sitter_folder}/${pattern}.tar.gz)
  list(LENGTH archive found)
  if(NOT found EQUAL 1)
    message(FATAL_ERROR "no ${name}.tar.gz in ${tree_sitter_folder}; remove the folder to fetch it again")
  endif()
  file(SHA256 ${archive} actual)
  if(NOT actual STREQUAL hash)
    message(FATAL_ERROR "${archive} has the SHA-256 ${actual}; cmake/tree_sitter.txt asks for ${hash}")
  endif()
  file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${PROJECT_BINARY_DIR}/tree_sitter)
endforeach()
file(GLOB tree_sitter_core ${PROJECT_BINARY_DIR}/tree_sitter/tree-sitter-*/tree_sitter/core/lib)
file(GLOB tree_sitter_python ${PROJECT_BINARY_DIR}/tree_sitter/tree?sitter?python-*/src)

# The grammar includes its headers as tree_sitter/parser.h; the library's archive has them next to its sources.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/tree_sitter/include/tree_sitter)
foreach(header parser array alloc)
  file(COPY_FILE ${tree_sitter_core}/src/${header}.h ${PROJECT_BINARY_DIR}/tree_sitter/include/tree_sitter/${header}.h ONLY_IF_DIFFERENT)
endforeach()

# Not our code: compiled without our warnings, optimised in every preset, and the program exports none of its names.
add_library(tree_sitter STATIC ${tree_sitter_core}/src/lib.c ${tree_sitter_python}/parser.c ${tree_sitter_python}/scanner.c)
target_include_directories(tree_sitter SYSTEM PUBLIC ${tree_sitter_core}/include
  PRIVATE ${tree_sitter_core}/src ${PROJECT_BINARY_DIR}/tree_sitter/include)
target_compile_options(tree_sitter PRIVATE -w -O2 -g0 -fvisibility=hidden)
