// SPDX-License-Identifier: Apache-2.0
// vfork and clone: announce the child, then jump to libc's function; no frame of ours is left when the child runs.

    .hidden agent_before_vfork
    .hidden agent_before_clone
    .text

    .p2align 4
    .globl vfork
    .type vfork,@function
vfork:
    .cfi_startproc
    hint #34  // bti c
    stp x29, x30, [sp, #-16]!
    .cfi_def_cfa_offset 16
    .cfi_offset 29, -16
    .cfi_offset 30, -8
    mov x29, sp
    bl agent_before_vfork
    mov x16, x0
    ldp x29, x30, [sp], #16
    .cfi_def_cfa_offset 0
    .cfi_restore 29
    .cfi_restore 30
    br x16
    .cfi_endproc
    .size vfork, .-vfork

// int clone(function, stack, flags, argument, …): w2 holds the flags; the stack is unchanged
    .p2align 4
    .globl clone
    .type clone,@function
clone:
    .cfi_startproc
    hint #34  // bti c
    stp x29, x30, [sp, #-80]!
    .cfi_def_cfa_offset 80
    .cfi_offset 29, -80
    .cfi_offset 30, -72
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    mov w0, w2
    bl agent_before_clone
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldp x29, x30, [sp], #80
    .cfi_def_cfa_offset 0
    .cfi_restore 29
    .cfi_restore 30
    br x16
    .cfi_endproc
    .size clone, .-clone

    .section .note.GNU-stack,"",@progbits
