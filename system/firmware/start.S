/* Start, interrupt handler and sleep of PicoRV32, whose instructions for interrupts assemblers do not know. */
    .section .start, "ax"
    .globl start
start:
    la sp, stack_end
    j clear_memory

/* The handler: q0 has the address to return to. Only registers that C may change are saved. */
    .org 0x10
    addi sp, sp, -64
    sw ra, 0(sp)
    sw t0, 4(sp)
    sw t1, 8(sp)
    sw t2, 12(sp)
    sw a0, 16(sp)
    sw a1, 20(sp)
    sw a2, 24(sp)
    sw a3, 28(sp)
    sw a4, 32(sp)
    sw a5, 36(sp)
    sw a6, 40(sp)
    sw a7, 44(sp)
    sw t3, 48(sp)
    sw t4, 52(sp)
    sw t5, 56(sp)
    sw t6, 60(sp)
    call handle_interrupt
    lw ra, 0(sp)
    lw t0, 4(sp)
    lw t1, 8(sp)
    lw t2, 12(sp)
    lw a0, 16(sp)
    lw a1, 20(sp)
    lw a2, 24(sp)
    lw a3, 28(sp)
    lw a4, 32(sp)
    lw a5, 36(sp)
    lw a6, 40(sp)
    lw a7, 44(sp)
    lw t3, 48(sp)
    lw t4, 52(sp)
    lw t5, 56(sp)
    lw t6, 60(sp)
    addi sp, sp, 64
    .word 0x0400000b /* retirq */

clear_memory:
    la t0, bss_begin
    la t1, bss_end
1:  bgeu t0, t1, 2f
    sw zero, 0(t0)
    addi t0, t0, 4
    j 1b
2:  call main
    ebreak

/* void mask_interrupts(uint32_t mask): a one disables an interrupt. */
    .text
    .globl mask_interrupts
mask_interrupts:
    .word 0x0605000b /* maskirq zero, a0 */
    ret

/* void wait_for_interrupt(void): until one is pending, whether it is masked or not. */
    .globl wait_for_interrupt
wait_for_interrupt:
    .word 0x0800000b /* waitirq zero */
    ret
