// SPDX-License-Identifier: Apache-2.0
// Doors for C++ functions of any signature: save the argument registers, call C++ code that records and returns the real function,
// restore everything. ENTRY jumps to the function; AROUND and CALL call it and read the result. Exceptions must pass:
// the frame has its own personality function, which records and continues to unwind, so neither libgcc nor libstdc++ is needed here.
// Measured: with a static libgcc, the cleanup aborts the job at the first exception.

#define SAVED 208

    .hidden agent_hook_enter
    .hidden agent_hook_leave
    .hidden agent_hook_entry
    .hidden agent_personality

    .section .data.rel.ro.agent_personality,"aw",@progbits
    .align 8
    .type agent_personality_pointer,@object
    .size agent_personality_pointer,8
agent_personality_pointer:
    .quad agent_personality

    .text

// Saves rdi … r9, rax (vector count of variadics), r10 and xmm0-7 on the stack; rsi = their address, edi = id, slot 24 = &return address
.macro SAVE_ARGUMENTS
    andq $-16, %rsp
    subq $SAVED, %rsp
    movq %rdi, 0(%rsp)
    movq %rsi, 8(%rsp)
    movq %rdx, 16(%rsp)
    movq %rcx, 24(%rsp)
    movq %r8, 32(%rsp)
    movq %r9, 40(%rsp)
    movq %rax, 48(%rsp)
    movq %r10, 56(%rsp)
    movaps %xmm0, 64(%rsp)
    movaps %xmm1, 80(%rsp)
    movaps %xmm2, 96(%rsp)
    movaps %xmm3, 112(%rsp)
    movaps %xmm4, 128(%rsp)
    movaps %xmm5, 144(%rsp)
    movaps %xmm6, 160(%rsp)
    movaps %xmm7, 176(%rsp)
    leaq 16(%rbp), %rax
    movq %rax, 192(%rsp)
    movl 8(%rbp), %edi
    movq %rsp, %rsi
.endm

.macro RESTORE_ARGUMENTS
    movq 0(%rsp), %rdi
    movq 8(%rsp), %rsi
    movq 16(%rsp), %rdx
    movq 24(%rsp), %rcx
    movq 32(%rsp), %r8
    movq 40(%rsp), %r9
    movq 48(%rsp), %rax
    movq 56(%rsp), %r10
    movaps 64(%rsp), %xmm0
    movaps 80(%rsp), %xmm1
    movaps 96(%rsp), %xmm2
    movaps 112(%rsp), %xmm3
    movaps 128(%rsp), %xmm4
    movaps 144(%rsp), %xmm5
    movaps 160(%rsp), %xmm6
    movaps 176(%rsp), %xmm7
.endm

    .p2align 4
    .type entry_common,@function
entry_common:
    .cfi_startproc
    .cfi_def_cfa_offset 16
    pushq %rbp
    .cfi_def_cfa_offset 24
    .cfi_offset %rbp, -24
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    SAVE_ARGUMENTS
    call agent_hook_entry
    movq %rax, %r11
    RESTORE_ARGUMENTS
    leave
    .cfi_def_cfa %rsp, 16
    .cfi_restore %rbp
    leaq 8(%rsp), %rsp
    .cfi_def_cfa_offset 8
    jmp *%r11
    .cfi_endproc
    .size entry_common, .-entry_common

    .p2align 4
    .type around_common,@function
around_common:
    .cfi_startproc
    .cfi_personality 0x9b, agent_personality_pointer
    .cfi_def_cfa_offset 16
    pushq %rbp
    .cfi_def_cfa_offset 24
    .cfi_offset %rbp, -24
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    SAVE_ARGUMENTS
    call agent_hook_enter
    movq %rax, %r11
    RESTORE_ARGUMENTS
    // c10d operations have at most one argument on the stack; four slots are copied, because reading the caller's frame is harmless
    pushq 48(%rbp)
    pushq 40(%rbp)
    pushq 32(%rbp)
    pushq 24(%rbp)
    call *%r11
    addq $32, %rsp
    movq %rax, 0(%rsp)
    movq %rdx, 8(%rsp)
    movaps %xmm0, 64(%rsp)
    movaps %xmm1, 80(%rsp)
    movq %rax, %rdi
    call agent_hook_leave
    movq 0(%rsp), %rax
    movq 8(%rsp), %rdx
    movaps 64(%rsp), %xmm0
    movaps 80(%rsp), %xmm1
    leave
    .cfi_def_cfa %rsp, 16
    .cfi_restore %rbp
    addq $8, %rsp
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
    .size around_common, .-around_common

.macro DOOR symbol, id, common
    .p2align 4
    .type \symbol,@function
\symbol:
    .cfi_startproc
    endbr64
    pushq $\id
    .cfi_adjust_cfa_offset 8
    jmp \common
    .cfi_endproc
    .size \symbol, .-\symbol
.endm

#define CALL(id, symbol, ...) DOOR symbol, id, around_common
#define AROUND(id, symbol, ...) DOOR symbol, id, around_common
#define ENTRY(id, symbol, ...) DOOR symbol, id, entry_common
#include "agent/c10d/c10d_hooks.inc"
#undef CALL
#undef AROUND
#undef ENTRY

// the doors by id, for the code that points slots to them
    .section .data.rel.ro.agent_c10d_doors,"aw",@progbits
    .align 8
    .globl agent_c10d_doors
    .hidden agent_c10d_doors
    .type agent_c10d_doors,@object
agent_c10d_doors:
#define CALL(id, symbol, ...) .quad symbol
#define AROUND(id, symbol, ...) .quad symbol
#define ENTRY(id, symbol, ...) .quad symbol
#include "agent/c10d/c10d_hooks.inc"
    .size agent_c10d_doors, .-agent_c10d_doors

    .section .note.GNU-stack,"",@progbits
