# SPDX-License-Identifier: Apache-2.0
# A build from nothing compiles the files of one folder together (CMake's unity build): headers are parsed and templates are compiled once
# for all of them. With -DDDPDOCTOR_UNITY=ON; off by default, because then an edit compiles one file again and a missing include is an error.
# The names that a file defines for itself must therefore be unique in its folder; detectors and checks have namespaces of their own.
option(DDPDOCTOR_UNITY "compile the files of a folder together: a fast build from nothing, a slow one after an edit" OFF)
set(ddpdoctor_most_unit_files 64)  # a larger folder becomes several units of one size, so that the cores share it
if(DDPDOCTOR_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # A large unit is a tenth faster if GCC collects its garbage from 1 GB on only.
  add_compile_options(--param=ggc-min-expand=300 --param=ggc-min-heapsize=1048576)
endif()

if(DDPDOCTOR_UNITY)
  target_compile_options(ddpdoctor_warnings INTERFACE -Wno-shadow)  # a name that another file defines for itself is not seen by the writer
endif()

function(ddpdoctor_unity target)
  if(NOT DDPDOCTOR_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(folder ${source} DIRECTORY)
    string(REPLACE ${PROJECT_SOURCE_DIR}/ "" folder "${folder}")
    string(MAKE_C_IDENTIFIER "of_${folder}" folder)
    list(APPEND folders ${folder})
    list(APPEND files_${folder} ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    list(LENGTH files_${folder} count)
    math(EXPR units "(${count} + ${ddpdoctor_most_unit_files} - 1) / ${ddpdoctor_most_unit_files}")
    set(number 0)
    foreach(source IN LISTS files_${folder})
      math(EXPR unit "${number} * ${units} / ${count}")
      math(EXPR number "${number} + 1")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${unit})
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
