// SPDX-License-Identifier: Apache-2.0
// Exported names of NCCL: each jumps to its probe through a table, so that the probe sees the arguments, the stack and the return
// address as the caller left them. And dlsym: names that begin with "nccl" are answered by us, everything else is a tail jump, because
// RTLD_NEXT asks who called.

    .hidden agent_nccl_doors
    .hidden agent_dlsym
    .hidden agent_real_dlsym

    .text

#define NCCL(id, symbol, probe) NCCL_DOOR symbol, id
.macro NCCL_DOOR symbol, id
    .p2align 4
    .globl \symbol
    .type \symbol,@function
\symbol:
    .cfi_startproc
    endbr64
    jmp *(agent_nccl_doors+8*\id)(%rip)
    .cfi_endproc
    .size \symbol, .-\symbol
.endm
#include "agent/nccl/nccl_functions.inc"

    .p2align 4
    .globl dlsym
    .type dlsym,@function
dlsym:
    .cfi_startproc
    endbr64
    cmpb $'n', (%rsi)
    jne 1f
    cmpb $'c', 1(%rsi)
    jne 1f
    cmpb $'c', 2(%rsi)
    jne 1f
    cmpb $'l', 3(%rsi)
    je 2f
1:
    movq agent_real_dlsym(%rip), %rax
    testq %rax, %rax
    jz 2f
    jmp *%rax
2:
    movq (%rsp), %rdx
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
    jz 3f
    ret
3:
    jmp *%rax  // the real dlsym
    .cfi_endproc
    .size dlsym, .-dlsym

    .section .note.GNU-stack,"",@progbits
