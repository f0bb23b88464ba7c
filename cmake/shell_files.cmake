# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM=ddpdoctor -DFOLDER=share -P shell_files.cmake: completions and manual pages, printed by the program itself, in the layout
# of PREFIX/share. The first page lists the commands that have a page.
function(printed file)
  execute_process(COMMAND ${PROGRAM} ${ARGN} OUTPUT_VARIABLE text RESULT_VARIABLE failed)
  if(NOT failed EQUAL 0)
    message(FATAL_ERROR "${PROGRAM} ${ARGN}: ${failed}")
  endif()
  file(WRITE ${FOLDER}/${file} "${text}")
  set(text "${text}" PARENT_SCOPE)
endfunction()

set(ENV{ASAN_OPTIONS} detect_leaks=0)  # a build may be traced, and then the leak check of a sanitized program fails
file(REMOVE_RECURSE ${FOLDER})
printed(bash-completion/completions/ddpdoctor completion bash)
printed(zsh/site-functions/_ddpdoctor completion zsh)
printed(fish/vendor_completions.d/ddpdoctor.fish completion fish)
printed(man/man1/ddpdoctor.1 man)
string(REGEX MATCHALL "ddpdoctor\\\\-[a-z-]+\\\\fR\\(1\\)" names "${text}")
foreach(name IN LISTS names)
  string(REGEX REPLACE "ddpdoctor\\\\-([a-z-]+)\\\\fR.*" "\\1" command "${name}")
  printed(man/man1/ddpdoctor-${command}.1 man ${command})
endforeach()
