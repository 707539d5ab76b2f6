// What the host does on the GPU beside launches: memory that grows and is kept from job to job, and tensor maps.
#pragma once
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdint>
#include <stdexcept>

#include "job.h"

namespace tilewright {

// An error of the CUDA runtime.
class CudaError : public std::runtime_error {
public:
    explicit CudaError(cudaError_t error) : std::runtime_error(cudaGetErrorName(error)), error(error) {}
    const cudaError_t error;
};

inline void check(cudaError_t error)
{
    if (error != cudaSuccess) throw CudaError(error);
}

// Global memory of the GPU. It begins at a multiple of ALIGNMENT.
class GlobalMemory {
public:
    static constexpr uint64_t ALIGNMENT = 2 << 20;

    // Room for `bytes` bytes. The contents are lost if that is more than there was.
    uint8_t* reserve(uint64_t bytes)
    {
        if (bytes > room || !allocation) {
            check(cudaFree(allocation));
            allocation = nullptr;
            check(cudaMalloc(&allocation, bytes + ALIGNMENT));
            room = bytes;
        }
        const uint64_t address = reinterpret_cast<uint64_t>(allocation);
        return reinterpret_cast<uint8_t*>((address + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    }

private:
    void* allocation = nullptr;
    uint64_t room = 0;
};

// Memory of the host that the GPU reaches too, at the same address.
class HostMemory {
public:
    uint8_t* reserve(uint64_t bytes)
    {
        if (bytes > room || !allocation) {
            check(cudaFreeHost(allocation));
            allocation = nullptr;
            check(cudaMallocHost(&allocation, bytes + 1));
            room = bytes;
        }
        return static_cast<uint8_t*>(allocation);
    }

private:
    void* allocation = nullptr;
    uint64_t room = 0;
};

// Tensor maps by the driver, whose functions are found when the program runs: building it takes no driver.
class Driver {
public:
    // Throws a sentence if there is no driver that can make tensor maps.
    Driver()
    {
        void* library = dlopen("libcuda.so.1", RTLD_NOW);
        if (!library) throw std::runtime_error("there is no CUDA driver: libcuda.so.1 cannot be loaded");
        tiled = reinterpret_cast<decltype(tiled)>(dlsym(library, "cuTensorMapEncodeTiled"));
        im2col = reinterpret_cast<decltype(im2col)>(dlsym(library, "cuTensorMapEncodeIm2col"));
        if (!tiled || !im2col) throw std::runtime_error("the CUDA driver has no functions for tensor maps");
    }

    // Makes the map of a record, for a job whose global memory is at `global`; returns what the driver says of it.
    CUresult encode(const MapRecord& record, uint64_t global, CUtensorMap* map) const
    {
        void* address = reinterpret_cast<void*>(global + record.address);
        const auto type = static_cast<CUtensorMapDataType>(record.type);
        const auto interleave = static_cast<CUtensorMapInterleave>(record.interleave);
        const auto swizzle = static_cast<CUtensorMapSwizzle>(record.swizzle);
        const auto promotion = static_cast<CUtensorMapL2promotion>(record.promotion);
        const auto fill = static_cast<CUtensorMapFloatOOBfill>(record.fill);
        if (record.im2col) {
            return im2col(map, type, record.rank, address, record.size, record.stride, record.lower, record.upper,
                          record.channels, record.pixels, record.step, interleave, swizzle, promotion, fill);
        }
        return tiled(map, type, record.rank, address, record.size, record.stride, record.box, record.step,
                     interleave, swizzle, promotion, fill);
    }

private:
    decltype(&cuTensorMapEncodeTiled) tiled;
    decltype(&cuTensorMapEncodeIm2col) im2col;
};

}  // namespace tilewright
