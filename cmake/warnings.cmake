# SPDX-License-Identifier: Apache-2.0
# One interface target carries the warnings; -Werror is a preset's business.
add_library(ddpdoctor_warnings INTERFACE)
target_compile_options(ddpdoctor_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast
  -Wimplicit-fallthrough)
