// The kernel that times multicast: every block of a cluster gets every box of the cluster's part of a tensor, by loads
// of its own or by multicasts, of which each block issues its share.
//
// Two threads of a block work. Box n goes to stage n mod `stages`. The consumer waits for the box at the barrier `full`
// of the stage, then expects the next one there and arrives at the barrier `empty` of the stage. The producer waits
// there until all that receive the box have arrived, and issues it. With multicast a stage uses the barrier `empty` of the
// one block that issues its boxes, and the arrivals of the others are remote.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "barriers.h"
#include "instructions.h"
#include "load_all.h"

namespace tilewright {

constexpr uint32_t SHARED_RANK = 2;     // of the tensor whose boxes are shared
constexpr uint32_t SHARERS = 64;        // threads of a block
constexpr uint32_t PRODUCER = 32;       // the consumer is thread 0
constexpr uint32_t STAGE_BARRIERS = 16; // bytes of both barriers of a stage

// Launched in clusters of `cores` blocks; `stages` is a multiple of that. ADD_UP: as in load_all.
template <bool MULTICAST, bool ADD_UP>
__global__ void share_all(const __grid_constant__ CUtensorMap map, const __grid_constant__ Task task, uint32_t cores)
{
    extern __shared__ __align__(ALIGNMENT) uint8_t memory[];
    const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
    const uint32_t stage_bytes = task.shape.stage_bytes, stages = task.stages;
    const uint32_t full = shared + stages * stage_bytes, empty = full + 8 * stages;
    const uint32_t core = own_core(), cluster = blockIdx.x / cores, clusters = gridDim.x / cores;
    const uint64_t first = task.boxes * cluster / clusters, boxes = task.boxes * (cluster + 1) / clusters - first;
    if (ADD_UP) {  // what no load writes counts as 0
        for (uint32_t i = threadIdx.x; i < stages * stage_bytes; i += blockDim.x) memory[i] = 0;
    }
    if (threadIdx.x == 0) {
        for (uint32_t stage = 0; stage < stages; ++stage) {
            init_barrier(full + 8 * stage);
            init_barrier(empty + 8 * stage, MULTICAST ? cores : 1);
        }
    }
    fence_for_copies();
    meet_cluster();
    if (threadIdx.x == 0) {
        const auto release = [&](uint32_t stage) {
            arrive_expecting(full + 8 * stage, task.box_bytes);
            arrive_in_cluster(address_in(MULTICAST ? stage % cores : core, empty + 8 * stage), 1);
        };
        for (uint32_t stage = 0; stage < stages && stage < boxes; ++stage) release(stage);
        unsigned long long sum = 0;
        for (uint64_t box = 0; box < boxes; ++box) {
            const uint32_t stage = static_cast<uint32_t>(box % stages);
            wait_for_stage(full + 8 * stage, box / stages & 1);
            if (ADD_UP) {
                for (uint32_t i = 0; i < stage_bytes; ++i) sum += memory[stage * stage_bytes + i];
                fence_for_copies();
            }
            if (box + stages < boxes) release(stage);
        }
        if (ADD_UP) atomicAdd(task.sum, sum);
    } else if (threadIdx.x == PRODUCER) {
        Walk walk(task.shape, first);
        for (uint64_t box = 0; box < boxes; ++box, walk.advance(task.shape)) {
            const uint32_t stage = static_cast<uint32_t>(box % stages);
            if (MULTICAST && stage % cores != core) continue;
            wait_for_stage<true>(empty + 8 * stage, box / stages & 1);
            const uint32_t place = shared + stage * stage_bytes, barrier = full + 8 * stage;
            const uint64_t tensor_map = reinterpret_cast<uint64_t>(&map);
            if (MULTICAST) {
                multicast({SHARED_RANK, false}, tensor_map, walk.at, place, barrier, (1u << cores) - 1);
            } else {
                load({SHARED_RANK, false}, tensor_map, walk.at, place, barrier);
            }
        }
    }
    meet_cluster();  // no block ends while others still write to it, or arrive there
}

}  // namespace tilewright
