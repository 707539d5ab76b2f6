// The kernels that are timed: every box of a tensor, or every block of a memory, is loaded into shared memory once.
//
// A block of threads takes a range of boxes. One thread issues them into a ring of stages and waits for the oldest.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "barriers.h"
#include "instructions.h"
#include "job.h"

namespace tilewright {

// What goes into the timing program: one Timing, then as many Shapes as it says, then the Shape that clusters share, of
// SHARED_RANK; timing.py has the same records.
//
// It answers with one JSON object: the GPU, what is wrong with each job (null if nothing is), and the milliseconds of
// every round: of the copy, of blocks, and of every job; 0 of one with which something is wrong. Jobs are the shapes,
// then the shared one: in clusters of 2, 4 and 8 blocks, each time with loads by every block, then with multicasts.
struct Timing {
    uint32_t shapes;
    uint32_t rounds;  // each times every job once
    uint64_t bytes;   // of the memory that tensors lie in, and that is copied to compare with
};

// Boxes of a tensor, each loaded once: box n starts in dimension d at first[d] + step[d] * (digit d of n), where digit d
// counts to count[d].
struct Shape {
    MapRecord map;
    int32_t first[5];
    uint32_t count[5], step[5];
    uint32_t extent[5];    // units of a box, 1 beyond the rank
    uint32_t unit_bytes;   // of dimension 0
    uint32_t stage_bytes;  // of shared memory that a box takes, a multiple of 128
};

static_assert(sizeof(Timing) == 16 && sizeof(Shape) == 272);

constexpr uint32_t BLOCK_BYTES = 8192;  // of a load without tensor
constexpr uint32_t ALIGNMENT = 1024;    // of stages: largest period of a swizzle

struct Task {
    Shape shape;
    uint64_t global;  // what the tensor's address counts from
    uint64_t boxes;
    uint32_t box_bytes;
    uint32_t stages;
    unsigned long long* sum;  // of all bytes that landed, if they are added up
};

// Start of one box after the other.
class Walk {
public:
    __device__ Walk(const Shape& shape, uint64_t box)
    {
#pragma unroll
        for (int d = 0; d < 5; ++d) {
            digit[d] = static_cast<uint32_t>(box % shape.count[d]);
            at.coords[d] = shape.first[d] + static_cast<int32_t>(digit[d] * shape.step[d]);
            box /= shape.count[d];
        }
    }

    __device__ void advance(const Shape& shape)
    {
        bool carry = true;
#pragma unroll
        for (int d = 0; d < 5; ++d) {
            if (!carry) break;
            carry = ++digit[d] == shape.count[d];
            if (carry) digit[d] = 0;
            at.coords[d] = carry ? shape.first[d] : at.coords[d] + static_cast<int32_t>(shape.step[d]);
        }
    }

    Start at = {};

private:
    uint32_t digit[5];
};

// A copy that never ends is an error of the kernel, after some seconds. IN_CLUSTER: other blocks arrive at the barrier.
template <bool IN_CLUSTER = false>
__device__ __forceinline__ void wait_for_stage(uint32_t barrier, uint32_t parity)
{
    for (uint32_t tries = 0; !(IN_CLUSTER ? phase_over_in_cluster : phase_over)(barrier, parity); ++tries) {
        if (tries == 1u << 28) __trap();
    }
}

// RANK 0: blocks of BLOCK_BYTES. ADD_UP: the bytes of stages are added to *task.sum, for which all threads stay.
template <uint32_t RANK, bool ADD_UP>
__global__ void load_all(const __grid_constant__ CUtensorMap map, const __grid_constant__ Task task)
{
    extern __shared__ __align__(ALIGNMENT) uint8_t memory[];
    const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
    const uint32_t stage_bytes = task.shape.stage_bytes, barriers = shared + task.stages * stage_bytes;
    if (ADD_UP) {  // what no load writes counts as 0
        for (uint32_t i = threadIdx.x; i < task.stages * stage_bytes; i += blockDim.x) memory[i] = 0;
    }
    if (threadIdx.x == 0) {
        for (uint32_t stage = 0; stage < task.stages; ++stage) init_barrier(barriers + 8 * stage);
    }
    fence_for_copies();
    __syncthreads();
    if (!ADD_UP && threadIdx.x) return;

    const uint64_t first = task.boxes * blockIdx.x / gridDim.x, end = task.boxes * (blockIdx.x + 1) / gridDim.x;
    Walk walk(task.shape, first);
    uint64_t next = first;
    const auto issue = [&](uint32_t stage) {
        const uint32_t place = shared + stage * stage_bytes, barrier = barriers + 8 * stage;
        if (threadIdx.x == 0) {
            arrive_expecting(barrier, task.box_bytes);
            if (RANK) {
                load({RANK, false}, reinterpret_cast<uint64_t>(&map), walk.at, place, barrier);
            } else {
                copy_to_shared(place, task.global + next * BLOCK_BYTES, BLOCK_BYTES, barrier);
            }
        }
        walk.advance(task.shape);
        ++next;
    };
    for (uint32_t stage = 0; stage < task.stages && next < end; ++stage) issue(stage);
    unsigned long long sum = 0;
    uint32_t stage = 0, parity = 0;
    for (uint64_t box = first; box < end; ++box) {
        wait_for_stage(barriers + 8 * stage, parity);
        if (ADD_UP) {
            for (uint32_t i = threadIdx.x; i < stage_bytes; i += blockDim.x) sum += memory[stage * stage_bytes + i];
            fence_for_copies();
            __syncthreads();  // all have read it
        }
        if (next < end) issue(stage);
        if (++stage == task.stages) {
            stage = 0;
            parity ^= 1;
        }
    }
    if (ADD_UP) atomicAdd(task.sum, sum);
}

// The same sum without a tensor map, from a tensor that all boxes lie inside of.
__global__ void add_up(const __grid_constant__ Task task)
{
    const Shape& shape = task.shape;
    const uint8_t* tensor = reinterpret_cast<const uint8_t*>(task.global + shape.map.address);
    unsigned long long sum = 0;
    for (uint64_t box = blockIdx.x; box < task.boxes; box += gridDim.x) {
        const Walk walk(shape, box);
        for (uint32_t i = threadIdx.x; i < task.box_bytes; i += blockDim.x) {
            uint32_t rest = i / shape.unit_bytes;
            uint64_t offset = i % shape.unit_bytes;
            for (int d = 0; d < 5; ++d) {
                const uint64_t x = static_cast<uint64_t>(walk.at.coords[d]) + rest % shape.extent[d];
                offset += x * (d ? shape.map.stride[d - 1] : shape.unit_bytes);
                rest /= shape.extent[d];
            }
            sum += tensor[offset];
        }
    }
    atomicAdd(task.sum, sum);
}

// Bytes that tell addresses apart.
__global__ void fill(uint32_t* words, uint64_t count)
{
    const uint64_t threads = static_cast<uint64_t>(gridDim.x) * blockDim.x;
    for (uint64_t i = blockIdx.x * static_cast<uint64_t>(blockDim.x) + threadIdx.x; i < count; i += threads) {
        uint32_t word = static_cast<uint32_t>(i) * 0x9E3779B1u;
        word = (word ^ word >> 15) * 0x85EBCA6Bu;
        words[i] = word ^ word >> 13;
    }
}

}  // namespace tilewright
