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
    endbr64
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call agent_before_vfork
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    jmp *%rax
    .cfi_endproc
    .size vfork, .-vfork

// int clone(function, stack, flags, argument, …): edx holds the flags; the rest may be on the stack, which is unchanged
    .p2align 4
    .globl clone
    .type clone,@function
clone:
    .cfi_startproc
    endbr64
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    pushq %rcx
    .cfi_adjust_cfa_offset 8
    pushq %r8
    .cfi_adjust_cfa_offset 8
    pushq %r9
    .cfi_adjust_cfa_offset 8
    pushq %rax
    .cfi_adjust_cfa_offset 8
    movl %edx, %edi
    call agent_before_clone
    movq %rax, %r11
    popq %rax
    .cfi_adjust_cfa_offset -8
    popq %r9
    .cfi_adjust_cfa_offset -8
    popq %r8
    .cfi_adjust_cfa_offset -8
    popq %rcx
    .cfi_adjust_cfa_offset -8
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    jmp *%r11
    .cfi_endproc
    .size clone, .-clone

    .section .note.GNU-stack,"",@progbits
