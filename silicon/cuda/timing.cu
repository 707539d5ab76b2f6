// Times loads of boxes against the GPU's own copies, and multicasts against separate loads; load_all.h has what it
// reads, timing.py starts it.
//
// Every job is first checked: its bytes, added up as they land, must be those that ordinary loads find. Then, after a
// round that does not count, every round times the copy, the blocks and all jobs one after the other.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "driver.h"
#include "load_all.h"
#include "share_all.h"

namespace tilewright {
namespace {

constexpr uint32_t BLOCKS = 8;          // of threads, on a multiprocessor
constexpr uint32_t MOST_STAGES = 64;
constexpr uint32_t RESERVED = 1024;     // bytes of shared memory that each block takes beyond its own
constexpr uint32_t BARRIER_BYTES = 8;   // of a stage
constexpr uint32_t TIMED = 32;          // threads of a block that only loads
constexpr uint32_t CHECKERS = 256;      // and of one that adds up

constexpr uint32_t CLUSTERS[] = {2, 4, 8};  // blocks of a cluster

using Kernel = void (*)(const CUtensorMap, const Task);
using SharingKernel = void (*)(const CUtensorMap, const Task, uint32_t);

template <bool ADD_UP>
Kernel kernel_of(uint32_t rank)
{
    constexpr Kernel kernels[] = {load_all<0, ADD_UP>, load_all<1, ADD_UP>, load_all<2, ADD_UP>,
                                  load_all<3, ADD_UP>, load_all<4, ADD_UP>, load_all<5, ADD_UP>};
    return kernels[rank];
}

class Bench {
public:
    explicit Bench(const Timing& timing) : bytes(timing.bytes)
    {
        check(cudaGetDeviceProperties(&device, 0));
        if (device.major < 9) throw std::runtime_error(std::string(device.name) + " has no tensor mover");
        memory = global.reserve(2 * bytes);
        check(cudaMalloc(&sums, 2 * sizeof *sums));
        check(cudaEventCreate(&start));
        check(cudaEventCreate(&stop));
        fill<<<32 * device.multiProcessorCount, 256>>>(reinterpret_cast<uint32_t*>(memory), bytes / 4);
        check(cudaGetLastError());
        check(cudaDeviceSynchronize());
    }

    // Rank 0: blocks of the whole memory, which come first.
    void add(const Shape& shape)
    {
        Job job = job_of(shape);
        job.task.stages = std::clamp(room() / (shape.stage_bytes + BARRIER_BYTES), 2u, MOST_STAGES);
        job.timed = prepare(job, kernel_of<false>(shape.map.rank), TIMED);
        job.checked = prepare(job, kernel_of<true>(shape.map.rank), CHECKERS);
        jobs.push_back(job);
    }

    // Adds the jobs of the shape that clusters share.
    void add_shared(const Shape& shape)
    {
        if (shape.map.rank != SHARED_RANK) throw std::runtime_error("the shared tensor has another rank");
        for (const uint32_t cores : CLUSTERS) {
            Job job = job_of(shape);
            job.cores = cores;
            job.task.stages = std::max(room() / (shape.stage_bytes + STAGE_BARRIERS) / cores, 1u) * cores;
            prepare_sharing(job, share_all<false, false>, share_all<false, true>);
            jobs.push_back(job);
            prepare_sharing(job, share_all<true, false>, share_all<true, true>);
            jobs.push_back(job);
        }
    }

    // Compares what lands with what is there.
    void check_all()
    {
        for (Job& job : jobs) {
            if (job.fault) continue;
            unsigned long long landed[2] = {};
            check(cudaMemset(sums, 0, sizeof landed));
            launch(job, job.checked);
            Task task = job.task;
            task.sum = sums + 1;
            add_up<<<BLOCKS * device.multiProcessorCount, CHECKERS>>>(task);
            check(cudaGetLastError());
            check(cudaMemcpy(landed, sums, sizeof landed, cudaMemcpyDeviceToHost));
            if (landed[0] != landed[1] * std::max(job.cores, 1u)) job.fault = "what lands is not what is there";
        }
        if (jobs.front().fault) throw std::runtime_error(std::string("of blocks, ") + jobs.front().fault);
    }

    // Milliseconds of the copy, then of each job; 0 of one with a fault.
    std::vector<float> round()
    {
        std::vector<float> times;
        times.push_back(time([&] {
            check(cudaMemcpyAsync(memory + bytes, memory, bytes, cudaMemcpyDeviceToDevice));
        }));
        for (const Job& job : jobs) {
            times.push_back(job.fault ? 0 : time([&] { launch(job, job.timed); }));
        }
        return times;
    }

    // Why each job is not timed; null if it is.
    std::vector<const char*> faults() const
    {
        std::vector<const char*> faults;
        for (const Job& job : jobs) faults.push_back(job.fault);
        faults.erase(faults.begin());
        return faults;
    }

    cudaDeviceProp device{};

private:
    // All that a launch needs, found out before the clock runs.
    struct Launch {
        Kernel kernel;
        SharingKernel sharing;
        uint32_t blocks, threads, shared_bytes;
    };

    struct Job {
        CUtensorMap map;
        Task task;
        Launch timed, checked;
        uint32_t cores;  // blocks of a cluster; 0 without clusters
        const char* fault = nullptr;
    };

    // Shared memory of a block, if a multiprocessor has BLOCKS of them.
    uint32_t room() const { return static_cast<uint32_t>(device.sharedMemPerMultiprocessor) / BLOCKS - RESERVED; }

    // A job without its launches.
    Job job_of(const Shape& shape)
    {
        Job job{};
        job.task = {shape, reinterpret_cast<uint64_t>(memory), 1, shape.unit_bytes, 0, sums};
        for (int d = 0; d < 5; ++d) {
            job.task.boxes *= shape.count[d];
            job.task.box_bytes *= shape.extent[d];
        }
        if (shape.map.rank) {
            const CUresult result = driver.encode(shape.map, reinterpret_cast<uint64_t>(memory), &job.map);
            if (result) job.fault = "the driver refuses its map";
        }
        return job;
    }

    void allow_shared_memory(const void* function) const
    {
        check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(device.sharedMemPerBlockOptin)));
        check(cudaFuncSetAttribute(function, cudaFuncAttributePreferredSharedMemoryCarveout,
                                   cudaSharedmemCarveoutMaxShared));
    }

    Launch prepare(const Job& job, Kernel kernel, uint32_t threads)
    {
        const uint32_t shared = job.task.stages * (job.task.shape.stage_bytes + BARRIER_BYTES);
        const void* function = reinterpret_cast<const void*>(kernel);
        int blocks = 0;
        allow_shared_memory(function);
        check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, static_cast<int>(threads), shared));
        const uint64_t all = static_cast<uint64_t>(blocks) * static_cast<uint64_t>(device.multiProcessorCount);
        return {kernel, nullptr, static_cast<uint32_t>(std::min(all, job.task.boxes)), threads, shared};
    }

    // Both launches have as many clusters as fit on the GPU at once.
    void prepare_sharing(Job& job, SharingKernel timed, SharingKernel checked)
    {
        const uint32_t shared = job.task.stages * (job.task.shape.stage_bytes + STAGE_BARRIERS);
        for (auto [launch, kernel] : {std::pair{&job.timed, timed}, std::pair{&job.checked, checked}}) {
            *launch = {nullptr, kernel, job.cores, SHARERS, shared};
            allow_shared_memory(reinterpret_cast<const void*>(kernel));
            int clusters = 0;
            cudaLaunchAttribute attribute;
            const cudaLaunchConfig_t config = config_of(job, *launch, attribute);
            check(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config));
            if (!clusters) job.fault = "no cluster fits";
            launch->blocks *= static_cast<uint32_t>(std::min<uint64_t>(std::max(clusters, 1), job.task.boxes));
        }
    }

    static cudaLaunchConfig_t config_of(const Job& job, const Launch& launch, cudaLaunchAttribute& cluster)
    {
        cluster.id = cudaLaunchAttributeClusterDimension;
        cluster.val.clusterDim = {job.cores, 1, 1};
        cudaLaunchConfig_t config{};
        config.gridDim = launch.blocks;
        config.blockDim = launch.threads;
        config.dynamicSmemBytes = launch.shared_bytes;
        config.attrs = &cluster;
        config.numAttrs = 1;
        return config;
    }

    static void launch(const Job& job, const Launch& launch)
    {
        if (job.cores) {
            cudaLaunchAttribute attribute;
            const cudaLaunchConfig_t config = config_of(job, launch, attribute);
            check(cudaLaunchKernelEx(&config, launch.sharing, job.map, job.task, job.cores));
        } else {
            launch.kernel<<<launch.blocks, launch.threads, launch.shared_bytes>>>(job.map, job.task);
        }
        check(cudaGetLastError());
    }

    template <typename Work>
    float time(Work work)
    {
        float milliseconds = 0;
        check(cudaEventRecord(start));
        work();
        check(cudaEventRecord(stop));
        check(cudaEventSynchronize(stop));
        check(cudaEventElapsedTime(&milliseconds, start, stop));
        return milliseconds;
    }

    const uint64_t bytes;
    Driver driver;
    GlobalMemory global;
    uint8_t* memory = nullptr;
    unsigned long long* sums = nullptr;
    cudaEvent_t start = nullptr, stop = nullptr;
    std::vector<Job> jobs;
};

template <typename Record>
Record read()
{
    Record record;
    if (std::fread(&record, sizeof record, 1, stdin) != 1) throw std::runtime_error("the input ends too early");
    return record;
}

// The shape that blocks of the whole memory are.
Shape blocks_of(uint64_t bytes)
{
    Shape shape{};
    for (int d = 0; d < 5; ++d) shape.count[d] = shape.step[d] = shape.extent[d] = 1;
    shape.count[0] = static_cast<uint32_t>(bytes / BLOCK_BYTES);
    shape.unit_bytes = shape.stage_bytes = BLOCK_BYTES;
    return shape;
}

void run()
{
    const Timing timing = read<Timing>();
    Bench bench(timing);
    bench.add(blocks_of(timing.bytes));
    for (uint32_t i = 0; i < timing.shapes; ++i) bench.add(read<Shape>());
    bench.add_shared(read<Shape>());
    bench.check_all();
    bench.round();
    int driver = 0, runtime = 0;
    check(cudaDriverGetVersion(&driver));
    check(cudaRuntimeGetVersion(&runtime));
    std::printf("{\"gpu\": \"%s\", \"driver\": %d, \"runtime\": %d, ", bench.device.name, driver, runtime);
    std::printf("\"l2_bytes\": %d, \"processors\": %d, ", bench.device.l2CacheSize, bench.device.multiProcessorCount);
    std::printf("\"faults\": [");
    const char* comma = "";
    for (const char* fault : bench.faults()) {
        if (fault) {
            std::printf("%s\"%s\"", comma, fault);
        } else {
            std::printf("%snull", comma);
        }
        comma = ", ";
    }
    std::printf("], \"rounds\": [");
    for (uint32_t i = 0; i < timing.rounds; ++i) {
        std::printf("%s[", i ? ", " : "");
        const std::vector<float> times = bench.round();
        for (size_t j = 0; j < times.size(); ++j) std::printf("%s%.6f", j ? ", " : "", times[j]);
        std::printf("]");
    }
    std::printf("]}\n");
}

}  // namespace
}  // namespace tilewright

int main()
{
    try {
        tilewright::run();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
