// SPDX-License-Identifier: Apache-2.0
// The doors of trampoline_x86_64.S on AArch64, where x8 holds the address for a returned object.

#define FRAME 224

    .hidden agent_hook_enter
    .hidden agent_hook_leave
    .hidden agent_hook_entry
    .hidden agent_personality

    .section .data.rel.ro.agent_personality,"aw",@progbits
    .p2align 3
    .type agent_personality_pointer,@object
    .size agent_personality_pointer,8
agent_personality_pointer:
    .quad agent_personality

    .text

// Saves x0 … x8, the address of the stack arguments and q0-7 on the stack; x1 = their address, w0 = id, passed in x16
.macro SAVE_ARGUMENTS
    stp x29, x30, [sp, #-FRAME]!
    .cfi_def_cfa_offset FRAME
    .cfi_offset 29, -FRAME
    .cfi_offset 30, -FRAME + 8
    mov x29, sp
    .cfi_def_cfa_register 29
    stp x0, x1, [x29, #16]
    stp x2, x3, [x29, #32]
    stp x4, x5, [x29, #48]
    stp x6, x7, [x29, #64]
    add x9, x29, #FRAME
    stp x8, x9, [x29, #80]
    stp q0, q1, [x29, #96]
    stp q2, q3, [x29, #128]
    stp q4, q5, [x29, #160]
    stp q6, q7, [x29, #192]
    mov w0, w16
    add x1, x29, #16
.endm

.macro RESTORE_ARGUMENTS
    ldp x0, x1, [x29, #16]
    ldp x2, x3, [x29, #32]
    ldp x4, x5, [x29, #48]
    ldp x6, x7, [x29, #64]
    ldr x8, [x29, #80]
    ldp q0, q1, [x29, #96]
    ldp q2, q3, [x29, #128]
    ldp q4, q5, [x29, #160]
    ldp q6, q7, [x29, #192]
.endm

.macro LEAVE_FRAME
    ldp x29, x30, [sp], #FRAME
    .cfi_def_cfa 31, 0
    .cfi_restore 29
    .cfi_restore 30
.endm

    .p2align 4
    .type entry_common,@function
entry_common:
    .cfi_startproc
    SAVE_ARGUMENTS
    bl agent_hook_entry
    mov x16, x0
    RESTORE_ARGUMENTS
    LEAVE_FRAME
    br x16
    .cfi_endproc
    .size entry_common, .-entry_common

    .p2align 4
    .type around_common,@function
around_common:
    .cfi_startproc
    .cfi_personality 0x9b, agent_personality_pointer
    SAVE_ARGUMENTS
    bl agent_hook_enter
    mov x16, x0
    RESTORE_ARGUMENTS
    // c10d operations have no argument on the stack; four slots are copied, because reading the caller's frame is harmless
    ldp x10, x11, [x29, #FRAME]
    ldp x12, x13, [x29, #FRAME + 16]
    sub sp, sp, #32
    stp x10, x11, [sp]
    stp x12, x13, [sp, #16]
    blr x16
    mov sp, x29
    stp x0, x1, [x29, #16]
    stp q0, q1, [x29, #96]
    stp q2, q3, [x29, #128]
    bl agent_hook_leave
    ldp x0, x1, [x29, #16]
    ldp q0, q1, [x29, #96]
    ldp q2, q3, [x29, #128]
    LEAVE_FRAME
    ret
    .cfi_endproc
    .size around_common, .-around_common

.macro DOOR symbol, id, common
    .p2align 4
    .type \symbol,@function
\symbol:
    .cfi_startproc
    hint #34  // bti c
    mov w16, #\id
    b \common
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
    .p2align 3
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
