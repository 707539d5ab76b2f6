/* Firmware of the reference system: reads a digit with a network, and then makes mistakes on purpose. */
#include "digit.h"
#include "soc_core.h"
#include "tilewright.h"

#define SERIAL (*(volatile uint32_t *)0x20000000)
#define REGION(name) ((volatile uint32_t *)(0x40000000 + SOC_CORE_##name##_BASE))
#define BARRIER 0x3000 /* in shared memory, behind what is copied there */
#define IRQ 4 /* of the core */
#define GLOBAL(part) __attribute__((section(".work" part), aligned(4096)))

void mask_interrupts(uint32_t mask);
void wait_for_interrupt(void);
void handle_interrupt(void);
int main(void);

static tw_core core;
static GLOBAL(".first") uint8_t memory[MODEL_MEMORY];
static GLOBAL("") uint64_t words[8][8];
static GLOBAL("") uint64_t descriptor[TW_DESCRIPTOR_WORDS];
static GLOBAL("") uint32_t damaged[64];

static void print(const char *text)
{
    while (*text)
        SERIAL = (uint8_t)*text++;
}

static void print_number(uint32_t number)
{
    char digits[11];
    unsigned place = sizeof digits - 1;

    digits[place] = 0;
    do
        digits[--place] = (char)('0' + number % 10);
    while (number /= 10);
    print(digits + place);
}

static uint32_t cycles(void)
{
    uint32_t now;

    __asm__ volatile("rdcycle %0" : "=r"(now));
    return now;
}

/* A line with the cycles since `*since`, from which the next phase counts. */
static void phase(const char *name, uint32_t *since)
{
    uint32_t now = cycles();

    print(name);
    print(": ");
    print_number(now - *since);
    print(" cycles\n");
    *since = cycles();
}

/* A line about what was tried, with the sentence of its status, and of a fault its details. */
static void report(const char *tried, tw_status status, const tw_fault *fault)
{
    print(tried);
    print(": ");
    print(tw_sentence(status));
    if (fault && fault->status) {
        print(", word ");
        print_number(fault->word);
        print(", tag ");
        print_number(fault->tag);
        if (fault->address) {
            print(", address ");
            print_number((uint32_t)fault->address);
        }
    }
    print("\n");
}

void handle_interrupt(void)
{
    tw_interrupt(&core);
}

/* Sleeps until an interrupt; one that comes between the test and the sleep ends the sleep at once. */
static void sleep(void *context)
{
    (void)context;
    mask_interrupts(UINT32_MAX);
    if (!core.events)
        wait_for_interrupt();
    mask_interrupts(~(UINT32_C(1) << IRQ));
}

static tw_status read_digit(void)
{
    uint8_t scores[SCORES];
    uint32_t best = 0, since = cycles();
    tw_model loaded;
    tw_fault fault;
    tw_status status = tw_model_load(&loaded, &core, digit_reader, digit_reader_size, memory, sizeof memory,
                                     (uintptr_t)memory);

    phase("load", &since);
    if (!status)
        status = tw_model_input(&loaded, 0, digit, sizeof digit);
    phase("input", &since);
    if (!status)
        status = tw_model_run(&loaded, sleep, NULL, &fault);
    phase("run", &since);
    if (!status)
        status = tw_model_output(&loaded, 0, scores, sizeof scores);
    phase("output", &since);
    if (status)
        return status;
    for (uint32_t i = 1; i < SCORES; i++)
        if (scores[i] > scores[best])
            best = i;
    print("this is a ");
    print_number(best);
    print("\n");
    return 0;
}

/* Runs a command as a program, with what was tried as the beginning of the line. */
static void try_program(const char *tried, tw_program *program)
{
    struct tw_program_end end = {.interrupt = 1};
    tw_fault fault = {0};
    tw_status status = tw_program_add(program, &tw_program_end_format, &end);

    if (!status)
        status = tw_start(&core, (uintptr_t)program->words, program->count);
    if (!status)
        status = tw_wait(&core, sleep, NULL, &fault);
    report(tried, status, &fault);
    program->count = 0;
    /* What a stopped program has left: its errors would count for the next one. */
    while (!(core.tmau[TW_REG_STATUS / 4] >> TW_REG_STATUS_IDLE_LSB & 1))
        ;
}

/* The checksum of a container of so many words. */
static uint32_t checksum(const uint32_t *container, uint32_t count)
{
    uint32_t first = 0, second = 0;

    for (uint32_t i = 4; i < count; i++) {
        first += container[i];
        second += first;
    }
    return first ^ (second << 16 | second >> 16);
}

static void make_mistakes(void)
{
    struct tw_descriptor map = {.rank = 1, .element = TW_ELEMENT_U8, .address = (uintptr_t)memory};
    struct tw_block copy = {.opcode = TW_OPCODE_COPY_BLOCK, .tag = 7, .size = 8192, .source = (uintptr_t)memory,
                            .destination_space = TW_SPACE_SHARED};
    struct tw_command load = {.opcode = TW_OPCODE_LOAD, .tag = 8, .descriptor = (uintptr_t)descriptor};
    tw_program program = {words, 8, 0};
    uint64_t command[TW_COMMAND_WORDS];
    tw_model unused;
    tw_status status = 0;

    map.size[0] = 64, map.box[0] = 24;
    report("a box of 24 bytes", tw_tensor_map(descriptor, &map), NULL);
    map.box[0] = 32;
    tw_tensor_map(descriptor, &map);
    descriptor[0] |= 7 << TW_DESCRIPTOR_RANK_LSB; /* by hand, past the library */
    tw_command_pack(command, &load);
    tw_program_command(&program, command);
    try_program("a descriptor of rank 7", &program);

    copy.source = 0x1000; /* no memory is there */
    tw_block_pack(command, &copy);
    tw_program_command(&program, command);
    try_program("a copy from nowhere", &program);

    tw_program_barrier_op(&program, TW_BARRIER_OP_INIT, BARRIER, 1);
    tw_program_barrier_op(&program, TW_BARRIER_OP_TRY_WAIT, BARRIER, 0);
    core.watchdog = 10000;
    try_program("a wait without end", &program);

    copy.source = (uintptr_t)memory;
    tw_block_pack(command, &copy);
    for (int i = 0; i < 100 && !status; i++)
        status = tw_send(&core, command);
    report("a hundred copies at once", status, NULL);
    report("an arrival too many", tw_barrier(&core, TW_BARRIER_OP_ARRIVE, BARRIER, 5, NULL), NULL);

    for (unsigned i = 0; i < 64; i++)
        damaged[i] = digit_reader[i];
    report("a model cut short", tw_model_load(&unused, &core, damaged, sizeof damaged, memory, sizeof memory,
                                              (uintptr_t)memory), NULL);
    damaged[1]++;
    report("a model of another version", tw_model_load(&unused, &core, damaged, sizeof damaged, memory, sizeof memory,
                                                       (uintptr_t)memory), NULL);
    damaged[1]--, damaged[2] = sizeof damaged, damaged[20]++;
    report("a damaged model", tw_model_load(&unused, &core, damaged, sizeof damaged, memory, sizeof memory,
                                            (uintptr_t)memory), NULL);
    damaged[3] = checksum(damaged, sizeof damaged / 4);
    core.hardware.smem_bytes *= 2;
    report("a model for another core", tw_model_load(&unused, &core, damaged, sizeof damaged, memory, sizeof memory,
                                                     (uintptr_t)memory), NULL);
}

int main(void)
{
    tw_status status;

    core = (tw_core){.tmau = REGION(TMAU), .pe = REGION(PE), .conv = REGION(CONV), .program = REGION(PROGRAM),
                     .commands = REGION(COMMANDS), .barriers = REGION(BARRIERS)};
    mask_interrupts(~(UINT32_C(1) << IRQ));
    status = tw_open(&core);
    if (!status)
        status = read_digit();
    if (status)
        report("the digit", status, NULL);
    if (MISTAKES)
        make_mistakes();
    print("done\n");
    return 0;
}
