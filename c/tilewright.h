/*
 * Tilewright: descriptors, commands, jobs and programs for a core, and a driver for its registers. C99; it needs no
 * memory but what it is given, and of the C library only <stdint.h> and <stddef.h>. The processor is little-endian.
 *
 * The structures are in tilewright_spec.h, a member for each field of a format. Clear a structure before use; members
 * hold values as in the specification, for example `box` 64 for 64 elements.
 */
#ifndef TILEWRIGHT_H
#define TILEWRIGHT_H

#include <stddef.h>
#include <stdint.h>

#include "tilewright_spec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Statuses ---- */

/* Where the code of a status comes from. The first four are error records of the hardware, and of its rules. */
#define TW_FROM_PROGRAM 0
#define TW_FROM_TMAU TW_ENGINE_TMAU
#define TW_FROM_PE TW_ENGINE_PE
#define TW_FROM_CONV TW_ENGINE_CONV
#define TW_FROM_LIBRARY 15

/* Codes of the library itself. */
enum {
    TW_LIBRARY_VALUE = 1, /* a value does not fit its field; `field` is the number of the field */
    TW_LIBRARY_TAG, /* the tag of a command in a program is not below 0x8000 */
    TW_LIBRARY_ROOM, /* the program has no room for another word */
    TW_LIBRARY_IDENTITY, /* there is no such engine at the address, or its registers have another version */
    TW_LIBRARY_MISSING, /* the core has no such engine or window */
    TW_LIBRARY_BUSY, /* a program runs */
    TW_LIBRARY_QUEUE, /* the command queue is full */
    TW_LIBRARY_BARRIER, /* the barrier refused the operation */
    TW_LIBRARY_FORMAT, /* this is not a model container */
    TW_LIBRARY_VERSION, /* the container has another version */
    TW_LIBRARY_SHORT, /* the container is cut short */
    TW_LIBRARY_CHECKSUM, /* the container is damaged: its checksum differs */
    TW_LIBRARY_HARDWARE, /* the model was compiled for a core of other sizes */
    TW_LIBRARY_MEMORY, /* the memory for the model is too small, or not at a multiple of 4096 */
    TW_LIBRARY_TENSOR, /* the model has no such input or output */
    TW_LIBRARY_BYTES /* the number of bytes is not that of the tensor */
};

#define TW_STATUS(from, code, field) ((tw_status)(code) | (tw_status)(field) << 8 | (tw_status)(from) << 16)
#define TW_STATUS_CODE(status) ((status) & 0xFF)
#define TW_STATUS_FIELD(status) ((status) >> 8 & 0xFF) /* as in the error record of the engine */
#define TW_STATUS_FROM(status) ((status) >> 16)

/* A sentence about a status, in lower case and without a full stop. */
const char *tw_sentence(tw_status status);

/* ---- Words ---- */

/* The reverse of tw_pack, of any words. */
void tw_unpack(void *members, const tw_format *format, const uint64_t *words);

/*
 * Makes the descriptor of a tensor map, in tile or im2col mode, and checks the rules that do not depend on the
 * hardware. `rank` entries of `size` and of `box` count, and rank - 1 of `stride`; `traversal` 0 means 1. What the mode
 * does not use is stored as zero. The refusal is the error that hardware reports for the descriptor.
 */
tw_status tw_tensor_map(uint64_t descriptor[TW_DESCRIPTOR_WORDS], const struct tw_descriptor *map);

/* The sizes of a core that rules depend on, as its registers tell them. */
typedef struct {
    uint32_t features; /* register `features` of the access unit */
    uint32_t smem_bytes;
    uint32_t bus_bytes;
    uint32_t addr_width; /* bits of a global byte address */
    uint32_t queue_depth; /* commands that wait in the access unit */
    uint32_t conv_row_bytes; /* 0: no convolution engine; so are the next members */
    uint32_t conv_types; /* a bit each: 8-bit integers, 16-bit integers, fp16, bf16 */
    uint32_t conv_function, conv_zero_first;
    uint32_t built[8]; /* params0 to params2 of the convolution engine, params0 to params4 of the processing engine */
} tw_hardware;

/* What hardware reports for any descriptor, or 0. */
tw_status tw_check_descriptor(const uint64_t descriptor[TW_DESCRIPTOR_WORDS], uint32_t features);
/*
 * What hardware without windows reports for any command; `descriptor` may be NULL for a command that has none, and for
 * the rules that do not depend on it.
 */
tw_status tw_check_command(const uint64_t command[TW_COMMAND_WORDS], const uint64_t *descriptor,
                           const tw_hardware *hardware);
/* What hardware reports for any job of the convolution engine. */
tw_status tw_check_job(const uint64_t job[TW_CONVOLUTION_WORDS], const tw_hardware *hardware);

/* ---- Programs of the command processor ---- */

/* A program that is being made; the words must begin at a multiple of 64 in global memory when it runs. */
typedef struct {
    uint64_t (*words)[8];
    uint32_t room, count; /* words that fit, and words so far: start with 0 */
} tw_program;

/* Appends a word of any format but the next two: tw_program_barrier_format, tw_program_end_format, … */
tw_status tw_program_add(tw_program *program, const tw_format *format, const void *members);
/* Appends a command of the access unit. */
tw_status tw_program_command(tw_program *program, const uint64_t command[TW_COMMAND_WORDS]);
/* Appends a job of the convolution engine, three words, with the job's tag. */
tw_status tw_program_job(tw_program *program, const uint64_t job[TW_CONVOLUTION_WORDS]);
/* Appends an operation on a barrier, of TW_BARRIER_OP_…; TRY_WAIT waits. */
tw_status tw_program_barrier_op(tw_program *program, uint32_t operation, uint32_t barrier, uint32_t value);
/* Appends writes of a segment, or of a page entry, to a table of the processing engine: TW_PE_PUT_SEGMENT, …_PAGE. */
tw_status tw_program_put(tw_program *program, uint32_t kind, uint32_t index, const uint64_t *words);

/* ---- The driver ---- */

/* A core. Set the addresses of its regions, NULL for those that it lacks, then call tw_open. */
typedef struct {
    volatile uint32_t *tmau, *pe, *conv, *program, *commands, *barriers;
    uint32_t watchdog; /* cycles that a word of a program may take, 0: for ever; tw_open sets 2^24 */
    volatile uint32_t events; /* what the interrupt handler has seen: bits of irq_status of the command processor */
    tw_hardware hardware; /* written by tw_open */
} tw_core;

/* What stopped a program. */
typedef struct {
    tw_status status;
    uint32_t tag, word; /* of the command or job; index of the word at which the program stopped */
    uint64_t address; /* of a bus error in the access unit, or of a barrier; otherwise 0 */
} tw_fault;

/* Reads identifications and sizes. Refused: IDENTITY. */
tw_status tw_open(tw_core *core);
/* Starts a program at a global address, with its interrupts enabled. Refused: BUSY, MISSING. */
tw_status tw_start(tw_core *core, uint64_t address, uint32_t words);
/* Call it from the interrupt handler: notes what happened, and clears the interrupt. */
void tw_interrupt(tw_core *core);
/*
 * Waits until the program has ended; 0 or why it stopped, with details in `fault` if that is not NULL. `sleep` is
 * called again and again, and should return after an interrupt; NULL: the registers are polled.
 */
tw_status tw_wait(tw_core *core, void (*sleep)(void *context), void *context, tw_fault *fault);
/* Sends a command through the command window; it never blocks. Refused: QUEUE, MISSING. */
tw_status tw_send(tw_core *core, const uint64_t command[TW_COMMAND_WORDS]);
/* Commands that have ended, modulo 256, and, if `status` is not NULL, the status of the one that ended last. */
uint32_t tw_ended(tw_core *core, tw_status *status);
/* Performs an operation on a barrier through the barrier window; `done`, if not NULL, is its answer. Refused: BARRIER. */
tw_status tw_barrier(tw_core *core, uint32_t operation, uint32_t barrier, uint32_t value, uint32_t *done);
/* The error record of the access unit, in `fault`; then it is cleared. 0: there was none. */
tw_status tw_take_error(tw_core *core, tw_fault *fault);

/* ---- Models ---- */

/* A model container in memory that the core reads and writes, ready to run. */
typedef struct {
    tw_core *core;
    const uint8_t *container;
    uint8_t *memory;
    uint64_t address; /* of `memory`, as the core sees it */
} tw_model;

/* An input or output. Elements are in row-major order, without gaps. */
typedef struct {
    uint32_t bytes; /* of the whole tensor: what tw_model_input takes */
    uint32_t rank, size[6]; /* outermost dimension first */
    uint32_t element; /* TW_ELEMENT_… */
    uint32_t scale; /* bits of a binary32: real = scale * (stored - zero) */
    int32_t zero;
} tw_model_tensor;

/*
 * Checks a container and copies its model to `memory`: `bytes` of it, at a multiple of 4096 in both address spaces, of
 * which tw_model_memory tells how many are needed. `size` is the number of bytes of the container, which begins at a
 * multiple of 4. Nothing is written if it is refused: FORMAT, VERSION, SHORT, CHECKSUM, HARDWARE, MEMORY.
 */
tw_status tw_model_load(tw_model *model, tw_core *core, const void *container, size_t size, void *memory, size_t bytes,
                        uint64_t address);
/* Bytes of memory that a container needs; 0 if it is none. */
uint32_t tw_model_memory(const void *container, size_t size);
/* Describes input or output `number`, counted from 0. Refused: TENSOR. */
tw_status tw_model_describe(const tw_model *model, uint32_t output, uint32_t number, tw_model_tensor *tensor);
/* Copies a whole input into its place. Refused: TENSOR, BYTES. */
tw_status tw_model_input(tw_model *model, uint32_t number, const void *data, size_t bytes);
/* Runs the network and waits for its end, as tw_start and tw_wait do. If it cannot start, `fault` has only a status. */
tw_status tw_model_run(tw_model *model, void (*sleep)(void *context), void *context, tw_fault *fault);
/* Copies a whole output to `data`. Refused: TENSOR, BYTES. */
tw_status tw_model_output(const tw_model *model, uint32_t number, void *data, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* TILEWRIGHT_H */
