# SPDX-License-Identifier: Apache-2.0
# A build from nothing compiles the files of one folder together (CMake's unity build): headers are parsed and templates are compiled once
# for all of them. With -DDDPDOCTOR_UNITY=ON; off by default, because then an edit compiles one file again and a missing include is an error.
# The names that a file defines for itself must therefore be unique in its folder; detectors and checks have namespaces of their own.
option(DDPDOCTOR_UNITY "compile the files of a folder together: a fast build from nothing, a slow one after an edit" OFF)
set(ddpdoctor_unit_files 16)  # of one unit, so that the cores share a large folder

function(ddpdoctor_unity target)
  if(NOT DDPDOCTOR_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(folder ${source} DIRECTORY)
    string(REPLACE ${PROJECT_SOURCE_DIR}/ "" folder "${folder}")
    string(MAKE_C_IDENTIFIER "of_${folder}" folder)
    if(NOT DEFINED files_${folder})
      set(files_${folder} 0)
    endif()
    math(EXPR unit "${files_${folder}} / ${ddpdoctor_unit_files}")
    math(EXPR files_${folder} "${files_${folder}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${unit})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
