// SPDX-License-Identifier: Apache-2.0
// Used only for linking, never loaded: libdl.so.2 as it was before glibc 2.34 moved its functions into libc under new versions. A
// library linked with this file finds them in libdl of an old image, and under their old versions in a new one.
void dladdr(void) {}
void dladdr1(void) {}
void dlclose(void) {}
void dlinfo(void) {}
void dlopen(void) {}
void dlsym(void) {}
void dlvsym(void) {}
