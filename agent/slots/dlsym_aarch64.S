// SPDX-License-Identifier: Apache-2.0
// dlsym as in dlsym_x86_64.S: lookups that we do not answer are a tail jump to the real one.

    .hidden agent_dlsym
    .text

    .p2align 4
    .globl dlsym
    .type dlsym,@function
dlsym:
    .cfi_startproc
    hint #34  // bti c
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset 29, -32
    .cfi_offset 30, -24
    mov x29, sp
    stp x0, x1, [sp, #16]
    bl agent_dlsym
    mov x16, x0
    mov x17, x1
    ldp x2, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_def_cfa_offset 0
    .cfi_restore 29
    .cfi_restore 30
    cbz x17, 1f
    ret
1:
    mov x0, x2
    br x16  // the real dlsym
    .cfi_endproc
    .size dlsym, .-dlsym

    .section .note.GNU-stack,"",@progbits
