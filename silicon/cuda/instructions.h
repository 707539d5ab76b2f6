// The instructions of the tensor mover: on blocks, bytes that lie together, and on tensors of one to five dimensions,
// tile and im2col.
//
// Global addresses are of the global window, shared ones of the shared window; `map` is the generic address of a tensor
// map. PTX wants addresses and sizes of blocks to be multiples of 16, and nothing here checks that. Copies to shared
// memory count their bytes at a barrier; those to global memory are part of the thread's next bulk group. Functions
// that return a bool return false if there is no such instruction, and have issued nothing then.
#pragma once
#include <cstdint>

#include "job.h"

namespace tilewright {

__device__ __forceinline__ void copy_to_shared(uint32_t destination, uint64_t source, uint32_t size, uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     destination),
                 "l"(source), "r"(size), "r"(barrier)
                 : "memory");
}

// To the same address in every block of the mask, where the barrier at the same address counts the bytes.
__device__ __forceinline__ void multicast_to_shared(
    uint32_t destination, uint64_t source, uint32_t size, uint32_t barrier, uint16_t mask)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
        ::"r"(destination), "l"(source), "r"(size), "r"(barrier), "h"(mask)
        : "memory");
}

__device__ __forceinline__ void copy_to_global(uint64_t destination, uint32_t source, uint32_t size)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(destination), "r"(source),
                 "r"(size)
                 : "memory");
}

// The destination and its barrier are those of one block of the cluster; addresses of the own block are valid there.
__device__ __forceinline__ void copy_in_shared(uint32_t destination, uint32_t source, uint32_t size, uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     destination),
                 "r"(source), "r"(size), "r"(barrier)
                 : "memory");
}

// Nothing tells when it is done.
__device__ __forceinline__ void prefetch_block(uint64_t source, uint32_t size)
{
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(source), "r"(size) : "memory");
}

// A reduction and the type of its elements as one number.
__device__ constexpr uint32_t pair(Reduction reduction, Type type)
{
    return static_cast<uint32_t>(reduction) << 16 | static_cast<uint32_t>(type);
}

// Reductions of blocks into either memory: ONE(reduction, type, ending of the instruction's name), or BITS with both
// types that have the instruction.
#define REDUCTIONS_INTO_BOTH(ONE, BITS)                                               \
    ONE(ADD, U32, "add.u32") ONE(ADD, S32, "add.s32") ONE(ADD, U64, "add.u64")        \
    ONE(MIN, U32, "min.u32") ONE(MIN, S32, "min.s32")                                 \
    ONE(MAX, U32, "max.u32") ONE(MAX, S32, "max.s32")                                 \
    ONE(INC, U32, "inc.u32") ONE(DEC, U32, "dec.u32")                                 \
    BITS(AND, U32, S32, "and.b32") BITS(OR, U32, S32, "or.b32") BITS(XOR, U32, S32, "xor.b32")
// And those into global memory alone.
#define REDUCTIONS_INTO_GLOBAL(ONE, BITS)                                             \
    ONE(ADD, F16, "add.noftz.f16") ONE(ADD, BF16, "add.noftz.bf16") ONE(ADD, F32, "add.f32") \
    ONE(MIN, U64, "min.u64") ONE(MIN, S64, "min.s64") ONE(MIN, F16, "min.f16") ONE(MIN, BF16, "min.bf16") \
    ONE(MAX, U64, "max.u64") ONE(MAX, S64, "max.s64") ONE(MAX, F16, "max.f16") ONE(MAX, BF16, "max.bf16") \
    BITS(AND, U64, S64, "and.b64") BITS(OR, U64, S64, "or.b64") BITS(XOR, U64, S64, "xor.b64")

#define INTO_GLOBAL(reduction, type, ending)                                                              \
    case pair(Reduction::reduction, Type::type):                                                          \
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." ending " [%0], [%1], %2;" ::"l"( \
                         destination),                                                                    \
                     "r"(source), "r"(size)                                                               \
                     : "memory");                                                                         \
        return true;
#define BITS_INTO_GLOBAL(reduction, type, other, ending)                                                  \
    case pair(Reduction::reduction, Type::other): INTO_GLOBAL(reduction, type, ending)

__device__ __forceinline__ bool reduce_to_global(
    Reduction reduction, Type type, uint64_t destination, uint32_t source, uint32_t size)
{
    switch (pair(reduction, type)) {
        REDUCTIONS_INTO_BOTH(INTO_GLOBAL, BITS_INTO_GLOBAL)
        REDUCTIONS_INTO_GLOBAL(INTO_GLOBAL, BITS_INTO_GLOBAL)
        default: return false;
    }
}

#define INTO_SHARED(reduction, type, ending)                                                                   \
    case pair(Reduction::reduction, Type::type):                                                               \
        asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes." ending   \
                     " [%0], [%1], %2, [%3];" ::"r"(destination),                                              \
                     "r"(source), "r"(size), "r"(barrier)                                                      \
                     : "memory");                                                                              \
        return true;
#define BITS_INTO_SHARED(reduction, type, other, ending)                                                       \
    case pair(Reduction::reduction, Type::other): INTO_SHARED(reduction, type, ending)

__device__ __forceinline__ bool reduce_in_shared(
    Reduction reduction, Type type, uint32_t destination, uint32_t source, uint32_t size, uint32_t barrier)
{
    switch (pair(reduction, type)) {
        REDUCTIONS_INTO_BOTH(INTO_SHARED, BITS_INTO_SHARED)
        default: return false;
    }
}

// What a tensor map says of the instructions that use it. With a constant form only its instruction is left of a
// function.
struct Form {
    uint32_t rank;
    bool im2col;
};

// Where a transfer starts: one coordinate a dimension and, in im2col mode, two offsets fewer; innermost first.
struct Start {
    int32_t coords[5];
    uint16_t offsets[3];
};

// Operands of all instructions on tensors: %0 the map, %1 to %5 coordinates, %6 to %8 offsets; then shared memory and
// barrier. Stores and reductions have no offsets.
#define COORDS_1 "{%1}"
#define COORDS_2 "{%1, %2}"
#define COORDS_3 "{%1, %2, %3}"
#define COORDS_4 "{%1, %2, %3, %4}"
#define COORDS_5 "{%1, %2, %3, %4, %5}"
#define MAP_AND_START                                                                                              \
    "l"(map), "r"(at.coords[0]), "r"(at.coords[1]), "r"(at.coords[2]), "r"(at.coords[3]), "r"(at.coords[4]),       \
        "h"(at.offsets[0]), "h"(at.offsets[1]), "h"(at.offsets[2])

// Issues the instruction of `form` by WRITE(rank, mode, offsets), with the names of both modes; returns from the
// function.
#define ISSUE_FORM(WRITE, tile, im2col_mode)                                  \
    switch (form.im2col ? form.rank + 5 : form.rank) {                        \
        case 1: WRITE(1, tile, ""); return true;                              \
        case 2: WRITE(2, tile, ""); return true;                              \
        case 3: WRITE(3, tile, ""); return true;                              \
        case 4: WRITE(4, tile, ""); return true;                              \
        case 5: WRITE(5, tile, ""); return true;                              \
        case 8: WRITE(3, im2col_mode, ", {%6}"); return true;                 \
        case 9: WRITE(4, im2col_mode, ", {%6, %7}"); return true;             \
        case 10: WRITE(5, im2col_mode, ", {%6, %7, %8}"); return true;        \
        default: return false;                                                \
    }

#define LOAD(rank, mode, offsets)                                                                                  \
    asm volatile("cp.async.bulk.tensor." #rank "d.shared::cluster.global." mode ".mbarrier::complete_tx::bytes"    \
                 " [%9], [%0, " COORDS_##rank "], [%10]" offsets ";" ::MAP_AND_START, "r"(shared), "r"(barrier)    \
                 : "memory")

__device__ __forceinline__ bool load(Form form, uint64_t map, const Start& at, uint32_t shared, uint32_t barrier)
{
    ISSUE_FORM(LOAD, "tile", "im2col")
}

#define MULTICAST(rank, mode, offsets)                                                                             \
    asm volatile("cp.async.bulk.tensor." #rank "d.shared::cluster.global." mode ".mbarrier::complete_tx::bytes"    \
                 ".multicast::cluster [%9], [%0, " COORDS_##rank "], [%10]" offsets ", %11;" ::MAP_AND_START,      \
                 "r"(shared), "r"(barrier), "h"(mask)                                                              \
                 : "memory")

// To the same address in every block of the mask, where the barrier at the same address counts the bytes.
__device__ __forceinline__ bool multicast(
    Form form, uint64_t map, const Start& at, uint32_t shared, uint32_t barrier, uint16_t mask)
{
    ISSUE_FORM(MULTICAST, "tile", "im2col")
}

#define STORE(rank, mode, offsets)                                                                                 \
    asm volatile("cp.async.bulk.tensor." #rank "d.global.shared::cta." mode ".bulk_group"                          \
                 " [%0, " COORDS_##rank "], [%9];" ::MAP_AND_START, "r"(shared)                                    \
                 : "memory")

__device__ __forceinline__ bool store(Form form, uint64_t map, const Start& at, uint32_t shared)
{
    ISSUE_FORM(STORE, "tile", "im2col_no_offs")
}

#define REDUCE(rank, operation_and_mode, offsets)                                                                  \
    asm volatile("cp.reduce.async.bulk.tensor." #rank "d.global.shared::cta." operation_and_mode ".bulk_group"     \
                 " [%0, " COORDS_##rank "], [%9];" ::MAP_AND_START, "r"(shared)                                    \
                 : "memory")

// The map has the type of the elements.
__device__ __forceinline__ bool reduce(Reduction reduction, Form form, uint64_t map, const Start& at, uint32_t shared)
{
    switch (reduction) {
        case Reduction::ADD: ISSUE_FORM(REDUCE, "add.tile", "add.im2col_no_offs")
        case Reduction::MIN: ISSUE_FORM(REDUCE, "min.tile", "min.im2col_no_offs")
        case Reduction::MAX: ISSUE_FORM(REDUCE, "max.tile", "max.im2col_no_offs")
        case Reduction::INC: ISSUE_FORM(REDUCE, "inc.tile", "inc.im2col_no_offs")
        case Reduction::DEC: ISSUE_FORM(REDUCE, "dec.tile", "dec.im2col_no_offs")
        case Reduction::AND: ISSUE_FORM(REDUCE, "and.tile", "and.im2col_no_offs")
        case Reduction::OR: ISSUE_FORM(REDUCE, "or.tile", "or.im2col_no_offs")
        case Reduction::XOR: ISSUE_FORM(REDUCE, "xor.tile", "xor.im2col_no_offs")
        default: return false;
    }
}

#define PREFETCH(rank, mode, offsets)                                                                              \
    asm volatile("cp.async.bulk.prefetch.tensor." #rank "d.L2.global." mode                                        \
                 " [%0, " COORDS_##rank "]" offsets ";" ::MAP_AND_START                                            \
                 : "memory")

// Nothing tells when it is done.
__device__ __forceinline__ bool prefetch(Form form, uint64_t map, const Start& at)
{
    ISSUE_FORM(PREFETCH, "tile", "im2col")
}

// Names that other files could want.
#undef LOAD
#undef MULTICAST
#undef STORE
#undef REDUCE
#undef PREFETCH

}  // namespace tilewright
