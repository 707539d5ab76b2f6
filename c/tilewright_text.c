/* Sentences about statuses. A program that never calls tw_sentence does not contain them. */
#include "tilewright.h"

static const char library_sentences[] =
    "no error\0"
    "a value does not fit its field\0"
    "the tag of a command in a program is not below 0x8000\0"
    "the program has no room for another word\0"
    "there is no such engine at the address, or its registers have another version\0"
    "the core has no such engine or window\0"
    "a program runs\0"
    "the command queue is full\0"
    "the barrier refused the operation\0"
    "this is not a model container\0"
    "the container has another version\0"
    "the container is cut short\0"
    "the container is damaged: its checksum differs\0"
    "the model was compiled for a core of other sizes\0"
    "the memory for the model is too small, or not at a multiple of 4096\0"
    "the model has no such input or output\0"
    "the number of bytes is not that of the tensor\0";

const char *tw_sentence(tw_status status)
{
    static const char *const tables[] = {
        tw_program_sentences, tw_tmau_sentences, tw_pe_sentences, tw_conv_sentences,
    };
    uint32_t from = TW_STATUS_FROM(status);
    const char *sentence = from < 4 ? tables[from] : library_sentences;

    for (uint32_t code = TW_STATUS_CODE(status); code && *sentence; code--)
        while (*sentence++)
            ;
    return *sentence ? sentence : "an unknown error";
}
