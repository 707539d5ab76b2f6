/* Sentences about statuses. A program that never calls tw_sentence does not contain them. */
#include "tilewright.h"

static const char *const library_sentences[] = {
    "no error",
    "a value does not fit its field",
    "the tag of a command in a program is not below 0x8000",
    "the program has no room for another word",
    "there is no such engine at the address, or its registers have another version",
    "the core has no such engine or window",
    "a program runs",
    "the command queue is full",
    "the barrier refused the operation",
    "this is not a model container",
    "the container has another version",
    "the container is cut short",
    "the container is damaged: its checksum differs",
    "the model was compiled for a core of other sizes",
    "the memory for the model is too small, or not at a multiple of 4096",
    "the model has no such input or output",
    "the number of bytes is not that of the tensor",
    NULL,
};

const char *tw_sentence(tw_status status)
{
    static const char *const *const tables[] = {
        tw_program_sentences, tw_tmau_sentences, tw_pe_sentences, tw_conv_sentences,
    };
    uint32_t from = TW_STATUS_FROM(status);
    const char *const *table = from < 4 ? tables[from] : library_sentences;

    for (uint32_t code = TW_STATUS_CODE(status); code && *table; code--)
        table++;
    return *table ? *table : "an unknown error";
}
