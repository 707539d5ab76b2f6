// The replay program: carries out jobs (job.h) on the first GPU until its input ends.
//
//   nvcc -arch=sm_90 -std=c++17 -O2 -o replay replay.cu
//
// Exit status: 0 at the end of the input, or if there is no GPU to work on (the Hello says why); 2 and a sentence on
// standard error if a job is malformed or a reply cannot be written; 3 after a Reply that says FAILED.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "carry_out.h"
#include "job.h"
#include "job_io.h"
#include "memories.h"
#include "tensor_maps.h"

namespace tilewright {

// A kernel takes no longer, whatever its command is.
constexpr std::chrono::seconds KERNEL_LIMIT(20);

template <size_t SIZE>
void set_text(char (&text)[SIZE], const char* value)
{
    text[std::string_view(value).copy(text, SIZE - 1)] = 0;
}

// The GPU and the memories in which jobs are carried out on it.
class Gpu {
public:
    // Fills in the Hello, and leaves a GPU that has run the kernel once. Throws a sentence if there is none.
    explicit Gpu(Hello& hello)
    {
        check(cudaRuntimeGetVersion(&hello.runtime));
        check(cudaDriverGetVersion(&hello.driver));
        driver.emplace();
        int shared;
        cudaDeviceProp properties;
        explain(cudaGetDeviceProperties(&properties, 0));
        set_text(hello.gpu, properties.name);
        hello.major = properties.major;
        hello.minor = properties.minor;
        if (hello.major < 9) {
            throw std::runtime_error("compute capability " + std::to_string(hello.major) + "." +
                                     std::to_string(hello.minor) + " is below 9.0");
        }
        explain(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
        explain(cudaFuncSetAttribute(carry_out, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
        shared_bytes = hello.shared_bytes = shared - BARRIER_BYTES;
        const uint64_t address = address_of_shared_memory();
        if (address % SHARED_ALIGNMENT) {
            throw std::runtime_error("shared memory begins at " + std::to_string(address) + ", which is no multiple of " +
                                     std::to_string(SHARED_ALIGNMENT));
        }
    }

    // Reads the memories of a job, carries it out and writes the reply. Returns false if a command broke the GPU.
    bool carry_out_job(const Job& job)
    {
        map_replies.assign(job.maps.size(), {});
        prepare(job.commands.size());
        ReplyHeader reply{REPLY, static_cast<uint32_t>(Status::OK), 0, 0, {}};
        try {
            run(job, reply.command);
        } catch (const CudaError& error) {
            reply.status = static_cast<uint32_t>(Status::FAILED);
            set_text(reply.message, error.what());
        }
        const bool whole = reply.status == static_cast<uint32_t>(Status::OK);
        if (whole) reply.command = 0;
        write_bytes(&reply, sizeof reply);
        write_records(map_replies);
        write_bytes(command_replies, job.commands.size() * sizeof(CommandReply));
        if (whole) write_bytes(memories, job.header.global_bytes + job.header.shared_bytes);
        return whole;
    }

    uint32_t shared_bytes = 0;  // largest shared memory of a job

private:
    static void explain(cudaError_t error)
    {
        if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
    }

    // Where the kernel finds shared memory in its window.
    uint64_t address_of_shared_memory()
    {
        try {
            prepare(1);
            launch(CUtensorMap{}, Task{{}, {}, nullptr, nullptr, 0, command_replies});
        } catch (const CudaError& error) {
            explain(error.error);
        }
        return command_replies[0].bytes;
    }

    // Replies of so many commands, all zero.
    void prepare(uint64_t commands)
    {
        const uint64_t bytes = commands * sizeof(CommandReply);
        command_replies = reinterpret_cast<CommandReply*>(replies.reserve(bytes));
        std::memset(command_replies, 0, bytes);
    }

    // `at` is the last command that was begun.
    void run(const Job& job, uint32_t& at)
    {
        const uint64_t global_bytes = job.header.global_bytes, image_bytes = job.header.shared_bytes;
        memories = staging.reserve(global_bytes + image_bytes);
        read_bytes(memories, global_bytes + image_bytes);
        uint8_t* const global_memory = global.reserve(global_bytes);
        uint8_t* const image_memory = image.reserve(image_bytes);
        check(cudaMemcpy(global_memory, memories, global_bytes, cudaMemcpyHostToDevice));
        check(cudaMemcpy(image_memory, memories + global_bytes, image_bytes, cudaMemcpyHostToDevice));

        const uint64_t base = reinterpret_cast<uint64_t>(global_memory);
        std::vector<CUtensorMap> maps(job.maps.size());
        for (size_t i = 0; i < maps.size(); ++i) map_replies[i].result = driver->encode(job.maps[i], base, &maps[i]);
        for (uint32_t i = 0; i < job.commands.size(); ++i) {
            at = i;
            const CommandRecord& command = job.commands[i];
            Task task{command, {}, global_memory, reinterpret_cast<uint4*>(image_memory), job.header.shared_bytes,
                      &command_replies[i]};
            if (!uses_map(command)) {
                if (command.op != static_cast<uint32_t>(Op::NOTHING)) launch(CUtensorMap{}, task);
            } else if (map_replies[command.map].result != CUDA_SUCCESS) {
                task.reply->outcome = static_cast<uint32_t>(Outcome::REFUSED);
            } else {
                task.form = {job.maps[command.map].rank, job.maps[command.map].im2col != 0};
                launch(maps[command.map], task);
            }
        }
        check(cudaMemcpy(memories, global_memory, global_bytes, cudaMemcpyDeviceToHost));
        check(cudaMemcpy(memories + global_bytes, image_memory, image_bytes, cudaMemcpyDeviceToHost));
    }

    // Runs the kernel to its end.
    static void launch(const CUtensorMap& map, const Task& task)
    {
        carry_out<<<1, THREADS, task.shared_bytes + BARRIER_BYTES>>>(map, task);
        check(cudaGetLastError());
        const auto start = std::chrono::steady_clock::now();
        for (cudaError_t error; (error = cudaStreamQuery(cudaStreamLegacy)) != cudaSuccess;) {
            if (error != cudaErrorNotReady) throw CudaError(error);
            if (std::chrono::steady_clock::now() - start > KERNEL_LIMIT) throw CudaError(cudaErrorLaunchTimeout);
        }
    }

    std::optional<Driver> driver;
    GlobalMemory global, image;
    HostMemory staging, replies;
    uint8_t* memories = nullptr;  // global memory, then shared memory
    CommandReply* command_replies = nullptr;
    std::vector<MapReply> map_replies;
};

// Returns the exit status.
int replay()
{
    Hello hello{};
    hello.magic = HELLO;
    std::optional<Gpu> gpu;
    try {
        gpu.emplace(hello);
    } catch (const std::exception& error) {
        hello.status = static_cast<uint32_t>(Status::FAILED);
        set_text(hello.message, error.what());
    }
    write_bytes(&hello, sizeof hello);
    if (!gpu) return 0;
    for (Job job; read_job(job, gpu->shared_bytes, COUNT_LIMIT);) {
        if (!gpu->carry_out_job(job)) return 3;
    }
    return 0;
}

}  // namespace tilewright

int main()
{
    int status = 2;
    try {
        status = tilewright::replay();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "replay: %s\n", error.what());
    }
    std::fflush(stderr);
    std::_Exit(status);  // whatever state the GPU is in
}
