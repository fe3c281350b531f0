// oneDNN's products of float32 and of bytes, opened at run time.
#pragma once

#include <cstdint>
#include <string>

namespace bitale {

struct GemmLibrary {
    bool present = false;
    std::string name;  // "libdnnl.so.3 (oneDNN 3.7.1)", or why there is none
    // Whether it multiplies bytes exactly: with instructions that add four products to 32 bits. Its code for
    // processors without them adds two products in 16 bits, which saturates.
    bool multiplies_bytes = false;
};
// Tries to open the library at the first call.
const GemmLibrary& gemm_library();

// The library sees one thread while this lives; the caller may be a thread of the user with settings of its
// own.
class OneThread {
  public:
    OneThread();
    ~OneThread();
    OneThread(const OneThread&) = delete;
    OneThread& operator=(const OneThread&) = delete;

  private:
    int before_ = 0;
};

// c = alpha * a . b + beta * c, row-major, in the calling thread, which holds a OneThread. False where there
// is no library, or where it fails for want of memory, before it writes anything.
bool multiply_by_onednn(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                        float alpha, const float* a, std::int64_t row_a, const float* b, std::int64_t row_b,
                        float beta, float* c, std::int64_t row_c);
// Likewise c = a . b, or c + a . b where it `adds`, exactly modulo 2^32.
bool multiply_by_onednn(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                        const std::int8_t* a, std::int64_t row_a, const std::int8_t* b, std::int64_t row_b,
                        bool adds, std::int32_t* c, std::int64_t row_c);
bool multiply_by_onednn(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                        const std::uint8_t* a, std::int64_t row_a, const std::int8_t* b, std::int64_t row_b,
                        bool adds, std::int32_t* c, std::int64_t row_c);

}  // namespace bitale
