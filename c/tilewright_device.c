/* The driver of a core: identification, programs, interrupts, windows, error records. */
#include "tilewright.h"

#define REG(base, engine, name) (base)[TW_##engine##REG_##name / 4]
#define FIELD(value, register_, name) ((value) >> TW_##register_##_##name##_LSB & ((1u << TW_##register_##_##name##_WIDTH) - 1))

#define WATCHDOG (UINT32_C(1) << 24)

static tw_status library(uint32_t code)
{
    return TW_STATUS(TW_FROM_LIBRARY, code, 0);
}

static uint64_t error_address(const volatile uint32_t *tmau)
{
    return (uint64_t)REG(tmau, , ERROR_ADDRESS_HI) << 32 | REG(tmau, , ERROR_ADDRESS_LO);
}

tw_status tw_open(tw_core *core)
{
    static const uint32_t identities[] = {TW_REG_ID_VALUE, TW_PE_REG_ID_VALUE, TW_CONV_REG_ID_VALUE,
                                          TW_PROGRAM_REG_ID_VALUE};
    const volatile uint32_t *const engines[] = {core->tmau, core->pe, core->conv, core->program};
    tw_hardware *hardware = &core->hardware;
    uint32_t word;

    *hardware = (tw_hardware){0};
    core->events = 0;
    core->watchdog = WATCHDOG;
    if (!core->tmau)
        return library(TW_LIBRARY_MISSING);
    for (unsigned i = 0; i < 4; i++)
        /* This library knows one version of registers. */
        if (engines[i] && (engines[i][TW_REG_ID / 4] != identities[i] ||
                           engines[i][TW_REG_VERSION / 4] >> TW_REG_VERSION_MAJOR_LSB !=
                               TW_REG_VERSION_VALUE >> TW_REG_VERSION_MAJOR_LSB))
            return library(TW_LIBRARY_IDENTITY);
    word = REG(core->tmau, , PARAMS0);
    hardware->bus_bytes = FIELD(word, REG_PARAMS0, BUS_BYTES);
    hardware->addr_width = FIELD(word, REG_PARAMS0, ADDR_WIDTH);
    hardware->queue_depth = FIELD(word, REG_PARAMS0, QUEUE_DEPTH);
    hardware->smem_bytes = REG(core->tmau, , PARAMS2);
    hardware->features = REG(core->tmau, , FEATURES);
    if (core->conv) {
        for (unsigned i = 0; i < 3; i++)
            hardware->built[i] = core->conv[TW_CONV_REG_PARAMS0 / 4 + i];
        hardware->conv_row_bytes = FIELD(hardware->built[0], CONV_REG_PARAMS0, ROW_BYTES);
        hardware->conv_types = FIELD(hardware->built[1], CONV_REG_PARAMS1, TYPES);
        hardware->conv_function = FIELD(hardware->built[1], CONV_REG_PARAMS1, FUNCTION_TABLE);
        hardware->conv_zero_first = FIELD(hardware->built[1], CONV_REG_PARAMS1, ZERO_FIRST);
    }
    if (core->pe) {
        for (unsigned i = 0; i < 4; i++)
            hardware->built[3 + i] = core->pe[TW_PE_REG_PARAMS0 / 4 + i];
        hardware->built[7] = REG(core->pe, PE_, PARAMS4);
    }
    return 0;
}

tw_status tw_start(tw_core *core, uint64_t address, uint32_t words)
{
    volatile uint32_t *program = core->program;
    uint32_t both = 1u << TW_PROGRAM_REG_IRQ_STATUS_ERROR_LSB | 1u << TW_PROGRAM_REG_IRQ_STATUS_DONE_LSB;

    if (!program)
        return library(TW_LIBRARY_MISSING);
    if (!FIELD(REG(program, PROGRAM_, STATUS), PROGRAM_REG_STATUS, IDLE))
        return library(TW_LIBRARY_BUSY);
    REG(program, PROGRAM_, IRQ_STATUS) = both;
    core->events = 0;
    REG(program, PROGRAM_, IRQ_ENABLE) = both;
    REG(program, PROGRAM_, PROGRAM_LO) = (uint32_t)address;
    REG(program, PROGRAM_, PROGRAM_HI) = (uint32_t)(address >> 32);
    REG(program, PROGRAM_, PROGRAM_WORDS) = words;
    REG(program, PROGRAM_, WATCHDOG) = core->watchdog;
    /* A start clears the records of the engines; that of the command processor is of the first error since this. */
    REG(program, PROGRAM_, CONTROL) = 1u << TW_PROGRAM_REG_CONTROL_CLEAR_ERROR_LSB;
    REG(program, PROGRAM_, CONTROL) = 1u << TW_PROGRAM_REG_CONTROL_START_LSB;
    return 0;
}

void tw_interrupt(tw_core *core)
{
    volatile uint32_t *const engines[] = {core->tmau, core->pe, core->conv, core->program};

    for (unsigned i = 0; i < 4; i++)
        if (engines[i]) {
            uint32_t status = REG(engines[i], , IRQ_STATUS) & REG(engines[i], , IRQ_ENABLE);

            REG(engines[i], , IRQ_STATUS) = status;
            if (engines[i] == core->program)
                core->events |= status;
        }
}

tw_status tw_take_error(tw_core *core, tw_fault *fault)
{
    volatile uint32_t *tmau = core->tmau;
    uint32_t record = REG(tmau, , ERROR);

    *fault = (tw_fault){record & 0xFF ? TW_STATUS(TW_FROM_TMAU, record & 0xFF, record >> 8 & 0xFF) : 0,
                        record >> TW_REG_ERROR_TAG_LSB, 0, error_address(tmau)};
    REG(tmau, , CONTROL) = 1u << TW_REG_CONTROL_CLEAR_ERROR_LSB;
    return fault->status;
}

/* What stopped the program, which is over. */
static tw_status stopped(tw_core *core, tw_fault *fault)
{
    uint32_t record = REG(core->program, PROGRAM_, ERROR), engine = FIELD(record, PROGRAM_REG_ERROR, ENGINE);
    tw_status status = TW_STATUS(TW_FROM_PROGRAM, record & 0xFF, 0);

    *fault = (tw_fault){status, record >> TW_PROGRAM_REG_ERROR_TAG_LSB, REG(core->program, PROGRAM_, ERROR_WORD), 0};
    if (engine == TW_ENGINE_TMAU) {
        record = REG(core->tmau, , ERROR);
        fault->address = error_address(core->tmau);
    } else if (engine) {
        record = REG(engine == TW_ENGINE_PE ? core->pe : core->conv, PE_, ERROR);
    }
    /* The record of an engine says more, unless somebody has cleared it. */
    if (engine && record & 0xFF)
        fault->status = TW_STATUS(engine, record & 0xFF, engine == TW_ENGINE_PE ? 0 : record >> 8 & 0xFF);
    return fault->status;
}

tw_status tw_wait(tw_core *core, void (*sleep)(void *context), void *context, tw_fault *fault)
{
    tw_fault own;
    uint32_t status;

    if (!core->program)
        return library(TW_LIBRARY_MISSING);
    while (sleep && !core->events)
        sleep(context);
    do
        status = REG(core->program, PROGRAM_, STATUS);
    while (!FIELD(status, PROGRAM_REG_STATUS, IDLE));
    if (!fault)
        fault = &own;
    *fault = (tw_fault){0};
    return FIELD(status, PROGRAM_REG_STATUS, DONE) ? 0 : stopped(core, fault);
}

tw_status tw_send(tw_core *core, const uint64_t command[TW_COMMAND_WORDS])
{
    if (!core->commands)
        return library(TW_LIBRARY_MISSING);
    if (FIELD(REG(core->tmau, , STATUS), REG_STATUS, QUEUE_LEVEL) >= core->hardware.queue_depth)
        return library(TW_LIBRARY_QUEUE);
    for (unsigned word = 0; word < TW_COMMAND_WORDS; word++) {
        core->commands[TW_COMMAND_WINDOW_REG_WORD0 / 4 + 2 * word] = (uint32_t)command[word];
        core->commands[TW_COMMAND_WINDOW_REG_WORD0 / 4 + 2 * word + 1] = (uint32_t)(command[word] >> 32);
    }
    return 0;
}

uint32_t tw_ended(tw_core *core, tw_status *status)
{
    uint32_t ended = core->commands ? REG(core->commands, COMMAND_WINDOW_, ENDED) : 0;
    uint32_t code = FIELD(ended, COMMAND_WINDOW_REG_ENDED, ERROR);

    if (status)
        *status = code ? TW_STATUS(TW_FROM_TMAU, code, 0) : 0;
    return ended >> TW_COMMAND_WINDOW_REG_ENDED_COUNT_LSB;
}

tw_status tw_barrier(tw_core *core, uint32_t operation, uint32_t barrier, uint32_t value, uint32_t *done)
{
    uint32_t result;

    if (!core->barriers)
        return library(TW_LIBRARY_MISSING);
    if (barrier % 8 || barrier >= core->hardware.smem_bytes || operation > TW_BARRIER_OP_TRY_WAIT || value >> 20)
        return library(TW_LIBRARY_BARRIER);
    REG(core->barriers, BARRIER_WINDOW_, ADDRESS) = barrier;
    REG(core->barriers, BARRIER_WINDOW_, OPERATION) =
        operation << TW_BARRIER_WINDOW_REG_OPERATION_OP_LSB | value << TW_BARRIER_WINDOW_REG_OPERATION_VALUE_LSB;
    result = REG(core->barriers, BARRIER_WINDOW_, RESULT);
    if (done)
        *done = FIELD(result, BARRIER_WINDOW_REG_RESULT, DONE);
    return FIELD(result, BARRIER_WINDOW_REG_RESULT, ERROR) ? library(TW_LIBRARY_BARRIER) : 0;
}
