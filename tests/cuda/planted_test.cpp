// Bugs planted in kernels of our own: the emulator finds each, names the threads and the lines, and lets the
// corrected twin pass; in every order of threads.
#include <cstddef>
#include <string>
#include <vector>

#include "runtime/cuda/emulator/blocks.h"
#include "runtime/cuda/emulator/table.h"
#include "tests/cuda/gpus.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"

using namespace bitale;
using namespace bitale::cuda;
using namespace bitale::test;

namespace {

struct Planted {
    const char* name;
    const char* wrong;
    const char* right;
    std::vector<const char*> words;  // all in the message
    unsigned blocks = 1, threads = 64;
};

// The variables of every body: out, in and more of blocks * threads ints each, t in the block, all in the
// grid. Nobody has written what is in `more`.
const std::vector<Planted>& planted_bugs() {
    static const std::vector<Planted> list = {
        {"a missing barrier",
         "__shared__ int s[64];\ns[t] = in[all];\nout[all] = s[63 - t];",
         "__shared__ int s[64];\ns[t] = in[all];\n__syncthreads();\nout[all] = s[63 - t];",
         {"k_test::s", "thread "}},
        {"a missing barrier after reading",
         "__shared__ int s[64];\nfor (int i = 0; i < 2; ++i) {\n    s[t] = i;\n    __syncthreads();\n"
         "    out[all] = s[63 - t];\n}",
         "__shared__ int s[64];\nfor (int i = 0; i < 2; ++i) {\n    s[t] = i;\n    __syncthreads();\n"
         "    out[all] = s[63 - t];\n    __syncthreads();\n}",
         {"k_test::s", "no barrier is between them", "`s[t] = i;`", "`out[all] = s[63 - t];`"}},
        {"a race within a block",
         "out[t / 2] = in[all];",
         "if (t % 2 == 0) out[t / 2] = in[all];",
         {"no barrier is between them", "thread", "writes", "written", "`out[t / 2] = in[all];`"}},
        {"a race of bytes",
         "((unsigned char*)out)[t / 2] = 1;",
         "((unsigned char*)out)[t] = 1;",
         {"1 bytes at byte", "no barrier is between them"}},
        {"a race between blocks",
         "out[t] = in[all];",
         "out[all] = in[all];",
         {"of block ", "blocks of a launch have no order"},
         3},
        {"a block that reads what another writes",
         "out[all] = all;\nif (out[blockDim.x * gridDim.x - 1 - all] == 0) out[all] = 2;",
         "out[all] = all;\nif (out[blockIdx.x * blockDim.x + t] == 0) out[all] = 2;",
         {"of block ", "blocks of a launch have no order"},
         2,
         1},
        {"an atomic and a plain access",
         "if (t == 0) out[0] = 0;\natomicAdd(out, 1);",
         "if (t == 0) out[0] = 0;\n__syncthreads();\natomicAdd(out, 1);",
         {"atomically change", "`atomicAdd(out, 1);`", "`if (t == 0) out[0] = 0;`"}},
        {"a write behind the end",
         "out[all + 1] = 1;",
         "out[all] = 1;",
         {"writes 4 bytes at byte 256 of a block of 256 bytes", "line 2, `out[all + 1] = 1;`"}},
        {"a read far behind the end",
         "out[all] = in[all + 17];",
         "out[all] = in[all + 16];",  // the tail may be read
         {"reads 4 bytes at byte 320 of a block of 256 bytes"}},
        {"a read before the begin",
         "out[all] = in[all - 1];",
         "out[all] = in[all];",
         {"reads 4 bytes 4 bytes before the begin of a block of 256 bytes"}},
        {"a write behind a shared array",
         "__shared__ int a[16];\n__shared__ int b[16];\nif (t < 17) {\n    a[t] = 1;\n    b[t] = 2;\n}\n"
         "__syncthreads();\nif (t < 16) out[all] = a[t] + b[t];",
         "__shared__ int a[16];\n__shared__ int b[16];\nif (t < 16) {\n    a[t] = 1;\n    b[t] = 2;\n}\n"
         "__syncthreads();\nif (t < 16) out[all] = a[t] + b[t];",
         {"thread 16 writes 4 bytes at byte 64 of the shared k_test::", "of 64 bytes"}},
        {"shared memory that nobody wrote",
         "__shared__ int s[64];\nif (t != 7) s[t] = t;\n__syncthreads();\nout[all] = s[63 - t];",
         "__shared__ int s[64];\ns[t] = t;\n__syncthreads();\nout[all] = s[63 - t];",
         {"thread 56 reads 4 bytes at byte 28 of the shared k_test::s", "no thread of the block has written"},
         2},
        {"an access that is not aligned",
         "*(long long*)(out + 1 + t / 64) = 1;",
         "if (t == 0) *(long long*)(out + 2) = 1;",
         {"not aligned"}},
        {"a divergent barrier",
         "if (t < 3) {\n    __syncthreads();\n} else {\n    __syncthreads(); \n}",
         "__syncthreads();",
         {"different barriers: thread 0 at line 3", "thread 3 at line 5"}},
        {"a barrier after a thread has ended",
         "if (t == 5) return;\n__syncthreads();",
         "__syncthreads();\nif (t == 5) return;",
         {"thread 5 has ended", "line 3, `__syncthreads();`"}},
        {"a shuffle that a lane does not reach",
         "if (t != 7) out[t] = __shfl_xor_sync(0xffffffffu, t, 1);",
         "const int x = __shfl_xor_sync(0xffffffffu, t, 1);\nif (t != 7) out[t] = x;",
         {"warp never meet"},
         1,
         32},
        {"a shuffle from a lane outside of the mask",
         "if (t < 16) out[t] = __shfl_sync(0xffffu, t, 20);",
         "if (t < 16) out[t] = __shfl_sync(0xffffu, t, 12);",
         {"reads lane 20, which takes no part in the shuffle"},
         1,
         32},
        {"a shuffle whose mask lacks the lane",
         "if (t < 17) out[t] = __shfl_sync(0xffffu, t, 3);",
         "if (t < 16) out[t] = __shfl_sync(0xffffu, t, 3);",
         {"thread 16 takes part in a warp operation whose mask 0xffff lacks it"},
         1,
         32},
        {"a shuffle that stands for a barrier",
         "__shared__ int s[32];\ns[t] = t;\nout[t] = __shfl_sync(0xffffffffu, t, 0) + s[31 - t];",
         "__shared__ int s[32];\ns[t] = t;\n__syncwarp();\nout[t] = s[31 - t];",
         {"k_test::s"},
         1,
         32},
        {"__syncwarp between two warps",
         "__shared__ int s[64];\ns[t] = t;\n__syncwarp();\nout[t] = s[63 - t];",
         "__shared__ int s[64];\ns[t] = t;\n__syncwarp();\nout[t] = s[t ^ 31];",
         {"k_test::s"}},
        {"a second write after __syncwarp",
         "__shared__ int s[32];\ns[t] = t;\n__syncwarp();\nconst int x = s[31 - t];\ns[t] = x;\nout[t] = x;",
         "__shared__ int s[32];\ns[t] = t;\n__syncwarp();\nconst int x = s[31 - t];\n__syncwarp();\n"
         "s[t] = x;\nout[t] = x;",
         {"`s[t] = x;`", "`const int x = s[31 - t];`"},
         1,
         32},
        {"an element that nobody wrote",
         "if (t != 7) more[t] = t;\n__syncthreads();\nout[t] = more[63 - t];",
         "more[t] = t;\n__syncthreads();\nout[t] = more[63 - t];",
         {"kernel k_test: thread 56 reads 4 bytes at byte 28 of a block of 256 bytes (argument 2), of which "
          "nobody has "
          "written byte 28 (line 4, `out[t] = more[63 - t];`)"}},
        {"a byte that nobody wrote, of a vector",
         "if (t < 63 || t > 64) ((char*)more)[t] = 1;\n__syncthreads();\n"
         "out[t] = (int)((const long long*)more)[t / 64 * 7];",
         "((char*)more)[t] = 1;\n__syncthreads();\nout[t] = (int)((const long long*)more)[t / 64 * 7];",
         {"reads 8 bytes at byte 56", "of which nobody has written byte 63"},
         1,
         128},
        {"a tail that nobody wrote",
         "more[t] = in[t];\nif (t == 63) out[t] = more[t + 1];",
         "more[t] = in[t];\nif (t == 63) out[t] = in[t + 1];",  // as the executor leaves tails
         {"thread 63 reads 4 bytes at byte 256 of a block of 256 bytes (argument 2), of which nobody has "
          "written byte "
          "256, behind the end"}},
        {"an atomic sum that begins nowhere",
         "atomicAdd(more, 1);",
         "if (t == 0) more[0] = 0;\n__syncthreads();\natomicAdd(more, 1);",
         {"of which nobody has written byte 0", "`atomicAdd(more, 1);`"}},
    };
    return list;
}

// An int of each thread, and the tail, that nobody has written.
class Fresh {
  public:
    explicit Fresh(const Planted& p) {
        REQUIRE(emulated_runtime().cudaSetDevice(0) == success);
        REQUIRE(emulated_runtime().cudaMalloc(&data_, std::size_t{4} * p.blocks * p.threads + tail_bytes) ==
                success);
    }
    ~Fresh() { emulated_runtime().cudaFree(data_); }
    Fresh(const Fresh&) = delete;
    Fresh& operator=(const Fresh&) = delete;
    void* data() const { return data_; }

  private:
    void* data_ = nullptr;
};

}  // namespace

TEST_CASE("each planted bug is found, and its corrected twin runs") {
    if (emulator_skipped()) return;
    const CheckedEmulator checked;
    for (const Planted& p : planted_bugs())
        for (const ThreadOrder order : thread_orders) {
            const InOrder scope(order);
            INFO(p.name << ", order " << static_cast<int>(order));
            const std::string problem = run_kernel(p.wrong, p.blocks, p.threads, Fresh(p).data()).problem;
            for (const char* words : p.words) CHECK_THAT(problem, ContainsSubstring(words));
            CHECK(run_kernel(p.right, p.blocks, p.threads, Fresh(p).data()).problem.empty());
        }
}
