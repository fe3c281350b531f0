// The memory of the emulated GPU, and pinned memory: the host's, of which every block is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/cuda/emulator/devices.h"
#include "runtime/cuda/emulator/written.h"
#include "runtime/cuda/types.h"

namespace bitale::cuda {

// The executor asks for so many bytes more than it uses: kernels may read them, never write them.
constexpr std::size_t tail_bytes = 64;

Status allocate_device(void** block, std::size_t bytes);  // of the device that this thread has chosen
Status release_device(void* block);
Status allocate_host(void** block, std::size_t bytes);
Status allocate_mapped(void** block, std::size_t bytes);  // of the host, for kernels too
Status release_host(void* block);
void memory_left(std::size_t* free, std::size_t* total);

// Allocations on a device beyond it fail as on a real GPU. 0: no limit.
void set_emulated_memory(std::int64_t bytes);

enum class MemoryKind : std::uint8_t { unknown, device, host, mapped };
// Where the whole range lies; unknown too when it leaves the block that it begins in.
MemoryKind memory_kind(const void* address, std::size_t bytes);

// A block that is alive, as an access sees it.
struct MemoryBlock {
    const char* begin = nullptr;
    std::size_t bytes = 0;  // may be read
    std::size_t writable = 0;
    int device = no_device;           // whose memory it is; none: the host's
    WrittenBytes* written = nullptr;  // null: nobody keeps account of it
    bool holds(const void* address) const {
        return static_cast<std::size_t>(static_cast<const char*>(address) - begin) < bytes;
    }
};
// The block that holds the address, else the nearest one; one without bytes where there is none.
MemoryBlock block_near(const void* address);

// Device memory that is allocated while accesses are checked keeps account of what was written: by copies, by
// cudaMemset, by kernels and libraries. Of other memory this knows nothing, and takes all for written.
void mark_written(const void* address, std::size_t bytes);
void mark_block_written(const void* address);  // the whole block that holds the address
void mark_device_written(int device);
void copy_written(const void* to, const void* from, std::size_t bytes);
// "byte 8 of a block of 256 bytes": the first byte of the range that nobody has written; empty where all are.
std::string unwritten_in(const void* address, std::size_t bytes);

// Whose memory lies there; no_device where it is the host's, or nobody's.
int device_of(const void* address);

}  // namespace bitale::cuda
