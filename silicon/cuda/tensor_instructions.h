// The instructions on tensors: load, store, reduction and prefetch, tile and im2col, of one to five dimensions.
//
// Functions return false if there is no such instruction, and have issued nothing then. With a constant `form` only its
// instruction is left of a function. Addresses in shared memory are of its window; `map` is the generic address of the
// tensor map.
#pragma once
#include <cstdint>

#include "job.h"

namespace tilewright {

// What a tensor map says of the instructions that use it.
struct Form {
    uint32_t rank;
    bool im2col;
};

// Where a transfer starts: one coordinate a dimension and, in im2col mode, two offsets fewer; innermost first.
struct Start {
    int32_t coords[5];
    uint16_t offsets[3];
};

// Operands of all instructions here: %0 the map, %1 to %5 coordinates, %6 to %8 offsets; then shared memory, barrier.
#define COORDS_1 "{%1}"
#define COORDS_2 "{%1, %2}"
#define COORDS_3 "{%1, %2, %3}"
#define COORDS_4 "{%1, %2, %3, %4}"
#define COORDS_5 "{%1, %2, %3, %4, %5}"
#define OFFSETS_3 ", {%6}"
#define OFFSETS_4 ", {%6, %7}"
#define OFFSETS_5 ", {%6, %7, %8}"
#define MAP_AND_START                                                                                              \
    "l"(map), "r"(at.coords[0]), "r"(at.coords[1]), "r"(at.coords[2]), "r"(at.coords[3]), "r"(at.coords[4]),       \
        "h"(at.offsets[0]), "h"(at.offsets[1]), "h"(at.offsets[2])

// Issues the instruction of `form` by TILE(rank, operation) or IM2COL(rank, operation); returns from the function.
#define ISSUE_FORM(TILE, IM2COL, operation)                  \
    switch (form.im2col ? form.rank + 5 : form.rank) {       \
        case 1: TILE(1, operation); return true;             \
        case 2: TILE(2, operation); return true;             \
        case 3: TILE(3, operation); return true;             \
        case 4: TILE(4, operation); return true;             \
        case 5: TILE(5, operation); return true;             \
        case 8: IM2COL(3, operation); return true;           \
        case 9: IM2COL(4, operation); return true;           \
        case 10: IM2COL(5, operation); return true;          \
        default: return false;                               \
    }

#define LOAD(rank, mode, offsets)                                                                                  \
    asm volatile("cp.async.bulk.tensor." #rank "d.shared::cluster.global." mode ".mbarrier::complete_tx::bytes"    \
                 " [%9], [%0, " COORDS_##rank "], [%10]" offsets ";" ::MAP_AND_START, "r"(shared), "r"(barrier)    \
                 : "memory")
#define LOAD_TILE(rank, operation) LOAD(rank, "tile", "")
#define LOAD_IM2COL(rank, operation) LOAD(rank, "im2col", OFFSETS_##rank)

// The barrier counts the bytes written to shared memory.
__device__ __forceinline__ bool load(Form form, uint64_t map, const Start& at, uint32_t shared, uint32_t barrier)
{
    ISSUE_FORM(LOAD_TILE, LOAD_IM2COL, )
}

#define MULTICAST(rank, mode, offsets)                                                                             \
    asm volatile("cp.async.bulk.tensor." #rank "d.shared::cluster.global." mode ".mbarrier::complete_tx::bytes"    \
                 ".multicast::cluster [%9], [%0, " COORDS_##rank "], [%10]" offsets ", %11;" ::MAP_AND_START,      \
                 "r"(shared), "r"(barrier), "h"(mask)                                                              \
                 : "memory")
#define MULTICAST_TILE(rank, operation) MULTICAST(rank, "tile", "")
#define MULTICAST_IM2COL(rank, operation) MULTICAST(rank, "im2col", OFFSETS_##rank)

// To the same address in every block of the mask, where the barrier at the same address counts the bytes.
__device__ __forceinline__ bool multicast(
    Form form, uint64_t map, const Start& at, uint32_t shared, uint32_t barrier, uint16_t mask)
{
    ISSUE_FORM(MULTICAST_TILE, MULTICAST_IM2COL, )
}

#define STORE(rank, mode)                                                                                          \
    asm volatile("cp.async.bulk.tensor." #rank "d.global.shared::cta." mode ".bulk_group"                          \
                 " [%0, " COORDS_##rank "], [%9];" ::MAP_AND_START, "r"(shared)                                    \
                 : "memory")
#define STORE_TILE(rank, operation) STORE(rank, "tile")
#define STORE_IM2COL(rank, operation) STORE(rank, "im2col_no_offs")

// Part of this thread's next bulk group.
__device__ __forceinline__ bool store(Form form, uint64_t map, const Start& at, uint32_t shared)
{
    ISSUE_FORM(STORE_TILE, STORE_IM2COL, )
}

#define REDUCE(rank, operation, mode)                                                                              \
    asm volatile("cp.reduce.async.bulk.tensor." #rank "d.global.shared::cta." operation "." mode ".bulk_group"     \
                 " [%0, " COORDS_##rank "], [%9];" ::MAP_AND_START, "r"(shared)                                    \
                 : "memory")
#define REDUCE_TILE(rank, operation) REDUCE(rank, operation, "tile")
#define REDUCE_IM2COL(rank, operation) REDUCE(rank, operation, "im2col_no_offs")

// Part of this thread's next bulk group. The map has the type of the elements.
__device__ __forceinline__ bool reduce(Reduction reduction, Form form, uint64_t map, const Start& at, uint32_t shared)
{
    switch (reduction) {
        case Reduction::ADD: ISSUE_FORM(REDUCE_TILE, REDUCE_IM2COL, "add")
        case Reduction::MIN: ISSUE_FORM(REDUCE_TILE, REDUCE_IM2COL, "min")
        case Reduction::MAX: ISSUE_FORM(REDUCE_TILE, REDUCE_IM2COL, "max")
        case Reduction::INC: ISSUE_FORM(REDUCE_TILE, REDUCE_IM2COL, "inc")
        case Reduction::DEC: ISSUE_FORM(REDUCE_TILE, REDUCE_IM2COL, "dec")
        case Reduction::AND: ISSUE_FORM(REDUCE_TILE, REDUCE_IM2COL, "and")
        case Reduction::OR: ISSUE_FORM(REDUCE_TILE, REDUCE_IM2COL, "or")
        case Reduction::XOR: ISSUE_FORM(REDUCE_TILE, REDUCE_IM2COL, "xor")
        default: return false;
    }
}

#define PREFETCH(rank, mode, offsets)                                                                              \
    asm volatile("cp.async.bulk.prefetch.tensor." #rank "d.L2.global." mode                                        \
                 " [%0, " COORDS_##rank "]" offsets ";" ::MAP_AND_START                                            \
                 : "memory")
#define PREFETCH_TILE(rank, operation) PREFETCH(rank, "tile", "")
#define PREFETCH_IM2COL(rank, operation) PREFETCH(rank, "im2col", OFFSETS_##rank)

// Nothing tells when it is done.
__device__ __forceinline__ bool prefetch(Form form, uint64_t map, const Start& at)
{
    ISSUE_FORM(PREFETCH_TILE, PREFETCH_IM2COL, )
}

#undef COORDS_1
#undef COORDS_2
#undef COORDS_3
#undef COORDS_4
#undef COORDS_5
#undef OFFSETS_3
#undef OFFSETS_4
#undef OFFSETS_5
#undef MAP_AND_START
#undef ISSUE_FORM
#undef LOAD
#undef LOAD_TILE
#undef LOAD_IM2COL
#undef MULTICAST
#undef MULTICAST_TILE
#undef MULTICAST_IM2COL
#undef STORE
#undef STORE_TILE
#undef STORE_IM2COL
#undef REDUCE
#undef REDUCE_TILE
#undef REDUCE_IM2COL
#undef PREFETCH
#undef PREFETCH_TILE
#undef PREFETCH_IM2COL

}  // namespace tilewright
