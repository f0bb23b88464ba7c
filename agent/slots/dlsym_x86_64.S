// SPDX-License-Identifier: Apache-2.0
// dlsym: calls our code first; lookups that we do not answer are a tail jump to the real one, because RTLD_NEXT and RTLD_DEFAULT
// depend on the caller.

    .hidden agent_dlsym
    .text

    .p2align 4
    .globl dlsym
    .type dlsym,@function
dlsym:
    .cfi_startproc
    endbr64
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call agent_dlsym
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testq %rdx, %rdx
    jz 1f
    ret
1:
    jmp *%rax  // the real dlsym
    .cfi_endproc
    .size dlsym, .-dlsym

    .section .note.GNU-stack,"",@progbits
