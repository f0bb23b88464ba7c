# SPDX-License-Identifier: Apache-2.0
# For AArch64, on another machine: Debian's cross compiler, and Debian's arm64 packages of the libraries that the program is linked with
# (`./dev aarch64` unpacks them into DDPDOCTOR_AARCH64_ROOT). Programs that the build starts run under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(DDPDOCTOR_AARCH64_ROOT $ENV{DDPDOCTOR_AARCH64_ROOT} CACHE PATH "folder with the unpacked arm64 packages")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES DDPDOCTOR_AARCH64_ROOT)
set(CMAKE_FIND_ROOT_PATH ${DDPDOCTOR_AARCH64_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${DDPDOCTOR_AARCH64_ROOT})
