# SPDX-License-Identifier: Apache-2.0
"""Every function that the agent replaces, read from its own tables, and libraries that define them all and record which one was called."""
import re
import subprocess
from pathlib import Path

AGENT = Path(__file__).resolve().parents[2] / "agent"
WORDS = 24  # of a call: six registers, the rest on the stack, so that an id of NCCL by value lies there
NEVER_RETURN = {"_exit", "_Exit", "abort"}


def _rows(path, pattern):
    return re.findall(pattern, (AGENT / path).read_text(), re.M)


def of_libraries():
    """The functions of NCCL, MPI, CUDA and c10d."""
    return [*_rows("nccl/nccl_functions.inc", r"^NCCL\(\d+, (\w+),"),
            *[name for word in _rows("mpi/mpi_calls.inc", r"^MPI\(\d+, \d+, (\w+),") for name in ("MPI_" + word, "PMPI_" + word, f"MPI_{word}_c")],
            *_rows("cuda/cuda_functions.inc", r"^CUDA\(\d+, (\w+)\)"), *_rows("c10d/c10d_hooks.inc", r"^(?:CALL|AROUND|ENTRY)\(\d+, (\w+)")]


def exported():
    """The functions of libc: what the agent exports."""
    return re.findall(r"(\w+);", (AGENT / "exports.map").read_text().split("local:")[0])


def build(folder, name, text, *flags):
    """Compiles C text into a library or program of that name."""
    (folder / (name + ".c")).write_text(text)
    subprocess.run(["gcc", "-w", "-O2", "-fPIC", "-fno-builtin", "-o", folder / name, folder / (name + ".c"), *map(str, flags)], check=True)
    return folder / name


def _words(pattern):
    return ", ".join(pattern.format(i) for i in range(WORDS))


def _declared(names, attributes=""):
    return "".join(f'extern long name_{i}({_words("long")}) __asm__("{name}"){attributes};\n' for i, name in enumerate(names))


def doubles(folder, name, names):
    """A library that has every one of `names`: it records which was called, and returns an address of zeros that belongs to that function."""
    return build(folder, name, f"int who = -1;\nstatic char zeros[{len(names)}][4096];\n" + "".join(
        f'long double_{i}({_words("long w{}")}) __asm__("{symbol}");\nlong double_{i}({_words("long w{}")}) {{ who = {i}; return (long)zeros[{i}]; }}\n'
        for i, symbol in enumerate(names)) + f"long answer_of(int i) {{ return (long)zeros[i]; }}\n", "-shared", f"-Wl,-soname,{name}")


def libc_doubles(folder, name, names):
    """A preload behind the agent: each function calls libc's, but the armed one returns its number, once. Functions that never return end
    the process with it."""
    text = f"""
extern void* dlsym(void*, const char*);
extern long syscall(long, ...);
int armed = -1, who = -1;
char magic[8192];
static void* next[{len(names)}];
static const char* const name[] = {{{", ".join(f'"{n}"' for n in names)}}};
static int tells(int i, long first, int with_arguments) {{
  if (armed != i || (with_arguments && first != (long)magic)) return 0;
  armed = -1; who = i; return 1;
}}
static void* real(int i) {{ return next[i] ? next[i] : (next[i] = dlsym((void*)-1L, name[i])); }}
"""
    six = ", ".join(f"long w{i}" for i in range(6))
    for i, symbol in enumerate(names):
        bare = symbol in NEVER_RETURN or symbol in ("fork", "vfork") or symbol in LEADING_NUMBER
        answer = f"syscall(231, {100 + i});" if symbol in NEVER_RETURN else f"return {1000 + i};"
        text += (f'long double_{i}({six}) __asm__("{symbol}");\n'
                 f"long double_{i}({six}) {{ if (tells({i}, w0, {int(not bare)})) {{ {answer} }} return ((long (*)({six}))real({i}))(w0, w1, w2, w3, w4, w5); }}\n")
    return build(folder, name, text, "-shared")


# The first argument of these is a 32-bit number, not an address.
LEADING_NUMBER = {"waitpid", "wait4", "waitid", "kill", "killpg", "write", "ftruncate", "ftruncate64", "posix_fallocate", "posix_fallocate64", "openat",
                  "openat64", "socket", "socketpair", "accept", "accept4", "dup", "eventfd", "epoll_create1"}


def caller(folder, name, names, *flags):
    """A library that calls each of `names` by a jump from one address, and returns their addresses as it sees them."""
    cases = "".join(f'    case {i}: return name_{i}({_words("w{}")});\n' for i in range(len(names)))
    table = ", ".join(f"name_{i}" for i in range(len(names)))
    return build(folder, name, _declared(names) + f"int which;\nlong pick({_words('long w{}')}) {{\n  switch (which) {{\n{cases}  }}\n  return -1;\n}}\n"
                  f"static void* const all[] = {{{table}}};\nvoid* address_of(int i) {{ return all[i]; }}\n", "-shared", "-fno-plt", *flags)


def asker(folder, name, names, *flags):
    """A program or library that has only a weak reference to each of `names`: `print_present` prints those that exist."""
    present = "".join(f'  if (name_{i}) puts("{symbol}");\n' for i, symbol in enumerate(names))
    return build(folder, name, "extern int puts(const char*);\n" + _declared(names, " __attribute__((weak))") +
                  f"int print_present(void) {{\n{present}  return 0;\n}}\nint main(void) {{ return print_present(); }}\n", *flags)
