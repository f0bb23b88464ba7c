# SPDX-License-Identifier: Apache-2.0
# Text files as string literals: cmake -DOUTPUT=x.cc -DHEADER=h -DNAMESPACE=n -DFILES=kA=a.css|kB=b.js -P embed.cmake
# Each file becomes `const std::string_view kA`, in pieces short enough for every compiler.
set(text "// Written by cmake/embed.cmake.\n#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\n")
string(REPLACE "|" ";" entries "${FILES}")
foreach(entry IN LISTS entries)
  string(REGEX MATCH "^([A-Za-z]+)=(.+)$" matched "${entry}")
  set(name "${CMAKE_MATCH_1}")
  file(READ "${CMAKE_MATCH_2}" content)
  string(FIND "${content}" ")embed\"" closes)
  if(NOT matched OR NOT closes EQUAL -1)
    message(FATAL_ERROR "${entry} cannot be embedded")
  endif()
  string(APPEND text "const std::string_view ${name} = R\"embed(${content})embed\";\n\n")
endforeach()
string(APPEND text "}  // namespace ${NAMESPACE}\n")
file(WRITE "${OUTPUT}" "${text}")
